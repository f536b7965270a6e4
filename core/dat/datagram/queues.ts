/**
 * The queues of a datagram endpoint's queue pair; a reset makes new ones. There is no peer to
 * connect to: it goes to RTS immediately. A failed send puts it in SQE. It returns to RTS when the
 * sends behind the failed one have been flushed (IBTA 10.3.1.7).
 */
import { DatagramCompletion, type DatagramEvent, DatDto, dtoStatusOf } from '../../evd/index.js';
import { assert } from '../../spi/checks/index.js';
import {
  type AsyncEventType,
  type CompletionQueue,
  CQE,
  GRH_LENGTH,
  grhAddresses,
  ipFromGid,
  QpState,
  QpType,
  type QueuePair,
  SQE,
  WcFlags,
  WcStatus,
} from '../../spi/index.js';
import { isReceive } from '../common/dto-event.js';
import type { Lmr } from '../memory/lmr.js';
import type { Pz } from '../memory/pz.js';
import { LmrSegment, type Segments } from '../memory/segment.js';
import { EntryFlag } from '../work/entry-ring.js';
import { QueueSet, UNKNOWN_SLOT } from '../work/queue-set.js';
import type { UdAddressHandle } from './address.js';
import type { UdEpAttributes } from './attributes.js';
import type { UdEp } from './endpoint.js';

/**
 * The GRH areas of received datagrams that are not dequeued. They are copied when the completion is
 * scanned, because the consumer may post the buffer again afterwards.
 */
class GrhQueue {
  private bytes: Uint8Array;
  private capacity: number;
  private head = 0;
  private count = 0;

  /** @param capacity headers that fit without growing; at least 1 */
  constructor(capacity: number) {
    this.capacity = capacity;
    this.bytes = new Uint8Array(capacity * GRH_LENGTH);
  }

  /** Appends the 40 bytes at `offset`; zeros if the memory has been transferred away. */
  push(memory: Uint8Array, offset: number): void {
    if (this.count === this.capacity) this.grow();
    const at = ((this.head + this.count) % this.capacity) * GRH_LENGTH;
    for (let i = 0; i < GRH_LENGTH; i++) this.bytes[at + i] = memory[offset + i] ?? 0;
    this.count++;
  }

  /** Takes the oldest; returns a copy. */
  shift(): Uint8Array {
    assert(this.count > 0, 'a datagram that is taken has a header');
    const at = this.head * GRH_LENGTH;
    this.head = (this.head + 1) % this.capacity;
    this.count--;
    return this.bytes.slice(at, at + GRH_LENGTH);
  }

  private grow(): void {
    const next = new Uint8Array(this.bytes.length * 2);
    const first = this.bytes.subarray(this.head * GRH_LENGTH);
    next.set(first);
    next.set(this.bytes.subarray(0, this.head * GRH_LENGTH), first.length);
    this.bytes = next;
    this.capacity *= 2;
    this.head = 0;
  }
}

const U32 = 2 ** 32;
const PSN_MASK = 0xffffff;

export interface UdQueuesInit {
  readonly ep: UdEp;
  readonly pz: Pz;
  readonly requestCq: CompletionQueue;
  readonly recvCq: CompletionQueue;
  readonly attributes: UdEpAttributes;
  readonly onQueuePairEvent: (event: AsyncEventType) => void;
  /** A receive has failed: the queue pair is in ERR. */
  readonly onBroken: (reason: string) => void;
}

export class UdQueues extends QueueSet<UdEp> {
  /** Index that reclaimed sends must reach before SQE is cleared. */
  private recoverAt = 0;
  /** Address handle of each send, by slot. */
  private readonly destinations: (UdAddressHandle | undefined)[];
  /** Region of each receive's GRH area, by slot. */
  private readonly headerRegions: (Lmr | undefined)[];
  private readonly headerOffsets: Float64Array;
  private readonly headers: GrhQueue;

  /**
   * Creates the queue pair and takes it to RTS.
   * @throws SpiError, or DatError when there are no completion contexts left
   */
  constructor(private readonly init: UdQueuesInit) {
    const { ep, pz, attributes } = init;
    super(ep, pz.core.owners, attributes, attributes.maxRequestIov, true, (context) =>
      datagramQueuePair(init, context),
    );
    const [sends, receives] = [this.sends.ring.entries, this.receives.ring.entries];
    this.destinations = new Array<UdAddressHandle | undefined>(sends).fill(undefined);
    this.headerRegions = new Array<Lmr | undefined>(receives).fill(undefined);
    this.headerOffsets = new Float64Array(receives);
    this.headers = new GrhQueue(attributes.maxRecvDtos);
  }

  /**
   * Writes a send. The caller has checked everything, including that there is room.
   * @param flags CompletionFlags
   */
  postSend(
    opcode: number,
    segments: Segments,
    to: UdAddressHandle,
    cookie: number,
    flags: number,
    immediate: number,
  ): void {
    const { ring, producer, nextWord: at } = this.sends;
    const { words } = ring;
    words[at + SQE.ADDRESS_HANDLE] = to.use();
    words[at + SQE.REMOTE_QPN] = to.qpn;
    words[at + SQE.REMOTE_QKEY] = to.qkey;
    this.destinations[producer & ring.mask] = to;
    this.commitSend(opcode, 0, segments, cookie, flags, immediate);
  }

  /** Checks that the first segment has room for the GRH area. */
  override postReceive(segments: Segments, cookie: number, flags: number): void {
    const { ring, producer } = this.receives;
    const first = segments instanceof LmrSegment ? segments : segments[0];
    const slot = producer & ring.mask;
    this.headerRegions[slot] = first?.lmr;
    this.headerOffsets[slot] = first?.offsetBytes ?? 0;
    super.postReceive(segments, cookie, flags);
  }

  /** Processes a completion as it is scanned. Returns whether the consumer may see it. */
  onCompletion(words: Uint32Array, at: number): boolean {
    const control = words[at + CQE.CONTROL] ?? 0;
    const index = words[at + CQE.WQE_INDEX] ?? 0;
    const status = control & 0xff;
    const received = isReceive(control);
    const { reclaimed } = this.sends;
    const slot = this.reclaim(index, received);
    if (slot === UNKNOWN_SLOT) return false;
    if (received) this.takeHeader(index, status);
    else this.releaseDestinations(reclaimed);
    if (status !== WcStatus.SUCCESS && status !== WcStatus.WR_FLUSH_ERR) {
      if (received) this.init.onBroken('a receive failed');
      else this.onSendFailed();
    }
    this.recover();
    return status !== WcStatus.SUCCESS || (slot & EntryFlag.HIDDEN) === 0;
  }

  private takeHeader(index: number, status: number): void {
    const slot = index & this.receives.ring.mask;
    const region = this.headerRegions[slot];
    this.headerRegions[slot] = undefined;
    if (status !== WcStatus.SUCCESS || region === undefined) return;
    this.headers.push(region.bytes, this.headerOffsets[slot] ?? 0);
  }

  /** Releases the address handles of sends reclaimed since then. */
  private releaseDestinations(since: number): void {
    const { ring, reclaimed } = this.sends;
    for (let i = since; i !== reclaimed; i = (i + 1) >>> 0) {
      this.destinations[i & ring.mask]?.release();
      this.destinations[i & ring.mask] = undefined;
    }
  }

  /** The provider flushes the sends that it has; later sends wait until that is done. */
  private onSendFailed(): void {
    if (this.qp.state === QpState.ERR) return;
    this.sendDoorbellOpen = false;
    this.recoverAt = this.sends.ring.producer;
  }

  private recover(): void {
    if (this.sendDoorbellOpen || ((this.sends.reclaimed - this.recoverAt) | 0) < 0) return;
    if (this.qp.state === QpState.SQE) this.qp.modify({ state: QpState.RTS });
    this.openSendDoorbell();
  }

  toEvent(words: Uint32Array, at: number): DatagramEvent {
    const control = words[at + CQE.CONTROL] ?? 0;
    const status = control & 0xff;
    const received = isReceive(control);
    const success = status === WcStatus.SUCCESS;
    const withImmediate = success && received && ((control >>> 16) & WcFlags.WITH_IMM) !== 0;
    const source = success && received ? this.source(words[at + CQE.SOURCE_QPN] ?? 0) : undefined;
    const arrived = withImmediate ? DatDto.RECV_UD_IMMED : DatDto.RECV_UD;
    const event = new DatagramCompletion(
      this.ep,
      (words[at + CQE.COOKIE_LO] ?? 0) + (words[at + CQE.COOKIE_HI] ?? 0) * U32,
      dtoStatusOf(status),
      success ? (words[at + CQE.BYTE_LENGTH] ?? 0) : 0,
      received ? arrived : DatDto.SEND_UD,
    );
    if (source !== undefined) event.source = source;
    if (withImmediate) event.immediate = words[at + CQE.IMMEDIATE_OR_INVALIDATE] ?? 0;
    if (!success) event.vendorError = words[at + CQE.VENDOR_ERROR] ?? 0;
    return event;
  }

  private source(qpn: number): { address: string; qpn: number } | undefined {
    const addresses = grhAddresses(this.headers.shift());
    return addresses && { address: ipFromGid(addresses.source), qpn };
  }

  protected override discard(): void {
    const { reclaimed } = this.sends;
    super.discard();
    this.releaseDestinations(reclaimed);
  }
}

function datagramQueuePair(init: UdQueuesInit, context: number): QueuePair {
  const { attributes, pz, requestCq, recvCq, onQueuePairEvent } = init;
  const { device, random } = pz.core.context;
  const qp = device.createQueuePair({
    type: QpType.UD,
    pd: pz.pd,
    sendCq: requestCq,
    receiveCq: recvCq,
    maxSendWr: attributes.maxRequestDtos,
    maxReceiveWr: attributes.maxRecvDtos,
    maxSendSge: attributes.maxRequestIov,
    maxReceiveSge: attributes.maxRecvIov,
    maxInlineBytes: 0,
    blocksOwnMulticast: !attributes.multicastLoopback,
    context,
    onEvent: onQueuePairEvent,
  });
  const { portNumber } = device.attributes;
  try {
    qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber, qkey: attributes.qkey });
    qp.modify({ state: QpState.RTR });
    qp.modify({ state: QpState.RTS, sendPsn: random.u32() & PSN_MASK });
  } catch (error) {
    qp.destroy();
    throw error;
  }
  return qp;
}
