/**
 * One life of the queue pair of an endpoint for datagrams. There is no peer to connect to: it goes
 * to RTS at once. A send that fails puts it in SQE, from where it is taken back once the sends
 * behind the failed one have been flushed (IBTA 10.3.1.7).
 */
import { assert } from '../../spi/checks/index.js';
import { toDatError } from '../../errors/index.js';
import {
  type CompletionOwner,
  DatDto,
  type DatagramEvent,
  DatEventNumber,
  dtoStatusOf,
} from '../../evd/index.js';
import {
  type AsyncEventType,
  type CompletionQueue,
  CQE,
  grhAddresses,
  ipFromGid,
  QpState,
  QpType,
  type QueuePair,
  RQE,
  SQE,
  WcFlags,
  WcOpcode,
  WcStatus,
  WrFlags,
} from '../../spi/index.js';
import type { UdEp } from './endpoint.js';
import type { UdAddressHandle } from './address.js';
import type { UdEpAttributes } from './attributes.js';
import { GrhQueue } from './headers.js';
import type { Lmr } from '../memory/lmr.js';
import type { Pz } from '../memory/pz.js';
import { LmrSegment } from '../memory/segment.js';
import { RECEIVE_ENTRY, SEND_ENTRY, Slot, WorkQueue } from '../work/work-queue.js';

const U32 = 2 ** 32;
const PSN_MASK = 0xffffff;
const RECEIVE_BIT = WcOpcode.RECV;
const DOORBELL = { operation: 'ep.post', hint: 'the device is gone' };

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

export class UdQueues implements CompletionOwner {
  readonly qp: QueuePair;
  readonly sends: WorkQueue;
  readonly receives: WorkQueue;
  private readonly context: number;
  private readonly signalEvery: number;
  private unsignalledRun = 0;
  /** Closed while SQE is cleared up. */
  private doorbellOpen = true;
  private recoverAt = 0;
  /** Of each send in its slot. */
  private readonly destinations: (UdAddressHandle | undefined)[];
  /** Of each receive in its slot: where its GRH area is. */
  private readonly headerRegions: (Lmr | undefined)[];
  private readonly headerOffsets: Float64Array;
  private readonly headers: GrhQueue;

  /**
   * Creates the queue pair and takes it to RTS.
   * @throws SpiError, or DatError when there are no completion contexts left
   */
  constructor(private readonly init: UdQueuesInit) {
    const { attributes, pz } = init;
    this.context = pz.core.owners.allocate(this);
    try {
      this.qp = this.createQueuePair();
    } catch (error) {
      pz.core.owners.free(this.context);
      throw error;
    }
    const { sendRing, receiveRing } = this.qp;
    assert(receiveRing !== undefined, 'a UD queue pair has a receive ring');
    const { maxRequestDtos, maxRequestIov, maxRecvDtos, maxRecvIov } = attributes;
    this.sends = new WorkQueue(sendRing, maxRequestDtos, maxRequestIov, SEND_ENTRY);
    this.receives = new WorkQueue(receiveRing, maxRecvDtos, maxRecvIov, RECEIVE_ENTRY);
    this.signalEvery = Math.max(1, maxRequestDtos >>> 1);
    this.destinations = new Array<UdAddressHandle | undefined>(sendRing.entries).fill(undefined);
    this.headerRegions = new Array<Lmr | undefined>(receiveRing.entries).fill(undefined);
    this.headerOffsets = new Float64Array(receiveRing.entries);
    this.headers = new GrhQueue(maxRecvDtos);
  }

  private createQueuePair(): QueuePair {
    const { attributes, pz, requestCq, recvCq, onQueuePairEvent } = this.init;
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
      context: this.context,
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

  get sendsFull(): boolean {
    return this.sends.outstanding >= this.sends.limit;
  }

  get receivesFull(): boolean {
    return this.receives.outstanding >= this.receives.limit;
  }

  /** Writes a send. The caller has checked everything, including that there is room. */
  postSend(
    opcode: number,
    wrFlags: number,
    suppress: boolean,
    segments: LmrSegment | readonly LmrSegment[],
    to: UdAddressHandle,
    cookie: number,
    immediate: number,
  ): void {
    const { sends } = this;
    const { words, mask } = sends.ring;
    const signal = !suppress || ++this.unsignalledRun >= this.signalEvery;
    if (signal) this.unsignalledRun = 0;
    const count = sends.putSegments(segments);
    const at = sends.nextWord;
    const flags = signal ? wrFlags | WrFlags.SIGNALED : wrFlags;
    words[at + SQE.CONTROL] = opcode | (flags << 8) | (count << 16);
    words[at + SQE.INLINE_LENGTH] = 0;
    words[at + SQE.COOKIE_LO] = cookie >>> 0;
    words[at + SQE.COOKIE_HI] = Math.floor(cookie / U32);
    words[at + SQE.IMMEDIATE_OR_INVALIDATE] = immediate;
    words[at + SQE.ADDRESS_HANDLE] = to.use();
    words[at + SQE.REMOTE_QPN] = to.qpn;
    words[at + SQE.REMOTE_QKEY] = to.qkey;
    this.destinations[sends.producer & mask] = to;
    sends.commit((suppress ? Slot.HIDDEN : 0) | (signal ? Slot.SIGNALLED : 0));
    this.ringSends();
  }

  /** Writes a receive, whose first segment has room for the GRH area. */
  postReceive(segments: LmrSegment | readonly LmrSegment[], cookie: number): void {
    const { receives } = this;
    const { words, mask } = receives.ring;
    const first = segments instanceof LmrSegment ? segments : segments[0];
    const slot = receives.producer & mask;
    this.headerRegions[slot] = first?.lmr;
    this.headerOffsets[slot] = first === undefined ? 0 : offsetOf(first);
    const count = receives.putSegments(segments);
    const at = receives.nextWord;
    words[at + RQE.NUM_SGE] = count;
    words[at + RQE.FLAGS] = 0;
    words[at + RQE.COOKIE_LO] = cookie >>> 0;
    words[at + RQE.COOKIE_HI] = Math.floor(cookie / U32);
    receives.commit(Slot.SIGNALLED);
    if (receives.publish()) ring(() => this.qp.ringReceiveDoorbell());
  }

  private ringSends(): void {
    if (this.doorbellOpen && this.sends.publish()) ring(() => this.qp.ringSendDoorbell());
  }

  /** Takes in a completion as it is scanned. Returns whether the consumer shall see it. */
  onCompletion(words: Uint32Array, at: number): boolean {
    const control = words[at + CQE.CONTROL] ?? 0;
    const index = words[at + CQE.WQE_INDEX] ?? 0;
    const status = control & 0xff;
    const isReceive = ((control >>> 8) & RECEIVE_BIT) !== 0;
    const queue = isReceive ? this.receives : this.sends;
    if (!queue.isOutstanding(index)) return false;
    const slot = queue.flagsOf(index);
    if (isReceive) this.takeHeader(index, status);
    else this.releaseDestinations(index);
    queue.reclaimThrough(index);
    if (status !== WcStatus.SUCCESS && status !== WcStatus.WR_FLUSH_ERR) {
      if (isReceive) this.init.onBroken('a receive failed');
      else this.onSendFailed();
    }
    this.recover();
    return status !== WcStatus.SUCCESS || (slot & Slot.HIDDEN) === 0;
  }

  private takeHeader(index: number, status: number): void {
    const slot = index & this.receives.ring.mask;
    const region = this.headerRegions[slot];
    this.headerRegions[slot] = undefined;
    if (status !== WcStatus.SUCCESS || region === undefined) return;
    this.headers.push(region.bytes, this.headerOffsets[slot] ?? 0);
  }

  private releaseDestinations(index: number): void {
    const { sends } = this;
    const end = (index + 1) >>> 0;
    for (let i = sends.reclaimed; i !== end; i = (i + 1) >>> 0) this.releaseDestination(i);
  }

  private releaseDestination(index: number): void {
    const slot = index & this.sends.ring.mask;
    this.destinations[slot]?.release();
    this.destinations[slot] = undefined;
  }

  /** What has been told to the provider is flushed; later sends wait until that is over. */
  private onSendFailed(): void {
    if (this.qp.state === QpState.ERR) return;
    this.doorbellOpen = false;
    this.recoverAt = this.sends.ring.producer;
  }

  private recover(): void {
    if (this.doorbellOpen || ((this.sends.reclaimed - this.recoverAt) | 0) < 0) return;
    if (this.qp.state === QpState.SQE) this.qp.modify({ state: QpState.RTS });
    this.doorbellOpen = true;
    this.ringSends();
  }

  /**
   * Everything that is outstanding flushes, and so does what is posted from now on.
   * @returns why not, when the device does not do it
   */
  toError(): string | undefined {
    try {
      if (this.qp.state !== QpState.ERR) this.qp.modify({ state: QpState.ERR });
      this.doorbellOpen = true;
      this.ringSends();
      return undefined;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  toEvent(words: Uint32Array, at: number): DatagramEvent {
    const control = words[at + CQE.CONTROL] ?? 0;
    const status = control & 0xff;
    const isReceive = ((control >>> 8) & RECEIVE_BIT) !== 0;
    const success = status === WcStatus.SUCCESS;
    const withImmediate = success && isReceive && ((control >>> 16) & WcFlags.WITH_IMM) !== 0;
    const source = success && isReceive ? this.source(words[at + CQE.SOURCE_QPN] ?? 0) : undefined;
    const received = withImmediate ? DatDto.RECV_UD_IMMED : DatDto.RECV_UD;
    return {
      type: 'datagram',
      number: DatEventNumber.IB_DTO,
      ep: this.init.ep,
      cookie: (words[at + CQE.COOKIE_LO] ?? 0) + (words[at + CQE.COOKIE_HI] ?? 0) * U32,
      status: dtoStatusOf(status),
      transferredLength: success ? (words[at + CQE.BYTE_LENGTH] ?? 0) : 0,
      operation: isReceive ? received : DatDto.SEND_UD,
      ...(source && { source }),
      ...(withImmediate && { immediate: words[at + CQE.IMMEDIATE_OR_INVALIDATE] ?? 0 }),
      ...(!success && { vendorError: words[at + CQE.VENDOR_ERROR] ?? 0 }),
    };
  }

  private source(qpn: number): { address: string; qpn: number } | undefined {
    const addresses = grhAddresses(this.headers.shift());
    return addresses && { address: ipFromGid(addresses.source), qpn };
  }

  /** Ends this life, with its completions that are not dequeued. */
  destroy(purge: (context: number) => void): void {
    const { sends, receives, init } = this;
    this.qp.destroy();
    purge(this.context);
    init.pz.core.owners.free(this.context);
    for (let i = sends.reclaimed; i !== sends.producer; i = (i + 1) >>> 0) {
      this.releaseDestination(i);
    }
    sends.discard();
    receives.discard();
  }
}

function ring(doorbell: () => void): void {
  try {
    doorbell();
  } catch (error) {
    throw toDatError(error, DOORBELL);
  }
}

function offsetOf({ lmr, addressLo, addressHi }: LmrSegment): number {
  return (addressHi - lmr.addressHi) * U32 + addressLo - lmr.addressLo;
}
