/**
 * QP1 of a device: its queues and buffers, and the port's list of posted sends. It knows work
 * requests and bytes; agents, responses and timeouts are not its business.
 *
 * At most `sendDepth` requests are on QP1, further ones wait on the overflow list. A request that
 * fails in transmission puts QP1 (a datagram QP) in SQE: the port takes it back to RTS, reports the
 * request that failed, and posts again those that were flushed behind it (design of October 2004).
 */
import {
  Access,
  CQE,
  GRH_LENGTH,
  GSI_QKEY,
  MAD_BYTES,
  QpState,
  QpType,
  RQE,
  SGE,
  SQE,
  SpiError,
  WcStatus,
  WrFlags,
  WrOpcode,
  AsyncEventType,
  grhAddresses,
  localIndexOf,
  nameOf,
} from '../../core/spi/index.js';
import type {
  CompletionQueue,
  Device,
  Logger,
  MadAddress,
  MemoryRegion,
  ProtectionDomain,
  QueuePair,
  Scheduler,
} from '../../core/spi/index.js';
import { AddressHandles } from './address-handles.js';
import type { CachedAddress } from './address-handles.js';

/** One entry for QP1. */
export interface WorkRequest {
  /** 256 bytes; read when the entry is written, which may be again after a flush. */
  readonly data: Uint8Array;
  readonly address: CachedAddress;
  readonly qpn: number;
  readonly qkey: number;
  /** Asked when it was flushed behind a failed one: false has it returned instead. */
  mayRepost(): boolean;
  /** Called once, from the pump. */
  onComplete(status: WcStatus): void;
}

export interface GsiPortOptions {
  readonly device: Device;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  readonly sendDepth: number;
  readonly receiveDepth: number;
  readonly maxIdleAddresses: number;
  readonly onMad: (data: Uint8Array, source: MadAddress) => void;
  /** QP1 is lost: what was posted will not complete. */
  readonly onTorn: () => void;
}

const SEND_SLOT_BYTES = MAD_BYTES;
const RECEIVE_SLOT_BYTES = 320;
const RECEIVED_BYTES = GRH_LENGTH + MAD_BYTES;
const SEND_COOKIE = 0;
const RECEIVE_COOKIE = 1;

export class GsiPort {
  readonly counters = {
    sent: 0,
    sendErrors: 0,
    reposted: 0,
    received: 0,
    receiveErrors: 0,
    malformed: 0,
  };
  readonly addresses: AddressHandles;
  private state: 'open' | 'torn' | 'closed' = 'open';
  private readonly pd: ProtectionDomain;
  private readonly cq: CompletionQueue;
  private readonly qp: QueuePair;
  private readonly sendMr: MemoryRegion;
  private readonly receiveMr: MemoryRegion;
  private readonly sendArena: Uint8Array;
  private readonly receiveArena: Uint8Array;
  /** By ring slot. */
  private readonly posted: (WorkRequest | undefined)[];
  /** By ring slot: 1 if it was behind a failed request, so that a flush of it means "again". */
  private readonly followers: Uint8Array;
  private postedCount = 0;
  private readonly overflow = new Set<WorkRequest>();
  private draining = false;
  private sendsWritten = false;

  /** @throws SpiError when the device refuses QP1 */
  constructor(private readonly options: GsiPortOptions) {
    const { device, sendDepth, receiveDepth } = options;
    this.pd = device.createProtectionDomain();
    this.cq = device.createCompletionQueue({
      minEntries: sendDepth + receiveDepth,
      onNotify: () => this.drain(),
      onEvent: (event) => this.onEvent(event),
    });
    this.qp = createQp1(options, this.pd, this.cq, (event) => this.onEvent(event));
    this.addresses = new AddressHandles(device, this.pd, options.maxIdleAddresses);
    const sendSlots = this.qp.sendRing.entries;
    const receiveSlots = receiveRingOf(this.qp).entries;
    this.sendArena = new Uint8Array(device.allocate(sendSlots * SEND_SLOT_BYTES));
    this.receiveArena = new Uint8Array(device.allocate(receiveSlots * RECEIVE_SLOT_BYTES));
    this.sendMr = this.pd.registerMemory(this.sendArena, 0, 0n);
    this.receiveMr = this.pd.registerMemory(this.receiveArena, Access.LOCAL_WRITE, 0n);
    this.posted = new Array<WorkRequest | undefined>(sendSlots).fill(undefined);
    this.followers = new Uint8Array(sendSlots);
    for (let i = 0; i < receiveDepth; i++) this.writeReceive();
    this.qp.ringReceiveDoorbell();
    this.cq.arm(false);
  }

  get isOpen(): boolean {
    return this.state === 'open';
  }

  /** Requests on QP1 and waiting for room on it. */
  get outstanding(): number {
    return this.postedCount + this.overflow.size;
  }

  get hasRoom(): boolean {
    return this.postedCount < this.options.sendDepth && this.overflow.size === 0;
  }

  /** Posts a request, or puts it on the overflow list. */
  post(request: WorkRequest): void {
    if (!this.hasRoom) {
      this.overflow.add(request);
      return;
    }
    this.writeSend(request);
    if (!this.draining) this.ringSends();
  }

  /** Takes a request off the overflow list; false when it is on QP1 and must complete first. */
  withdraw(request: WorkRequest): boolean {
    return this.overflow.delete(request);
  }

  /** Moves QP1 to ERR: everything posted completes as flushed. */
  flush(): void {
    if (this.state !== 'open') return;
    try {
      this.qp.modify({ state: QpState.ERR });
    } catch (error) {
      this.tear(`QP1 cannot be flushed: ${String(error)}`);
    }
  }

  /** Gives up what is posted; nothing of it completes any more. */
  tear(reason: string): void {
    if (this.state !== 'open') return;
    this.state = 'torn';
    this.options.logger.warn(`MAD port lost: ${reason}`);
    this.posted.fill(undefined);
    this.postedCount = 0;
    this.overflow.clear();
    this.options.onTorn();
  }

  /** Ends QP1. What the device has destroyed already is passed over. */
  close(): void {
    if (this.state === 'closed') return;
    const torn = this.state === 'torn';
    this.state = 'closed';
    const steps = [
      () => this.qp.destroy(),
      () => this.cq.destroy(),
      () => this.addresses.close(),
      () => this.sendMr.destroy(),
      () => this.receiveMr.destroy(),
      () => this.pd.destroy(),
    ];
    for (const step of steps) {
      try {
        step();
      } catch (error) {
        if (!torn) this.options.logger.error(`closing QP1: ${String(error)}`);
      }
    }
  }

  private writeSend(request: WorkRequest): void {
    const ring = this.qp.sendRing;
    const index = ring.producer;
    const slot = index & ring.mask;
    const { words } = ring;
    const at = ring.wordOf(index);
    this.sendArena.set(request.data, slot * SEND_SLOT_BYTES);
    words.fill(0, at, at + SQE.SEGMENTS);
    words[at + SQE.CONTROL] = WrOpcode.SEND | (WrFlags.SIGNALED << 8) | (1 << 16);
    words[at + SQE.COOKIE_LO] = index;
    words[at + SQE.COOKIE_HI] = SEND_COOKIE;
    words[at + SQE.ADDRESS_HANDLE] = request.address.handle.handle;
    words[at + SQE.REMOTE_QPN] = request.qpn;
    words[at + SQE.REMOTE_QKEY] = request.qkey;
    const segment = at + SQE.SEGMENTS;
    writeSegment(words, segment, slot * SEND_SLOT_BYTES, MAD_BYTES, this.sendMr.lkey);
    this.posted[slot] = request;
    this.followers[slot] = 0;
    this.postedCount++;
    ring.producer = index + 1;
    this.sendsWritten = true;
  }

  private writeReceive(): void {
    const ring = receiveRingOf(this.qp);
    const index = ring.producer;
    const { words } = ring;
    const at = ring.wordOf(index);
    words[at + RQE.NUM_SGE] = 1;
    words[at + RQE.FLAGS] = 0;
    words[at + RQE.COOKIE_LO] = index;
    words[at + RQE.COOKIE_HI] = RECEIVE_COOKIE;
    const offset = (index & ring.mask) * RECEIVE_SLOT_BYTES;
    writeSegment(words, at + RQE.SEGMENTS, offset, RECEIVED_BYTES, this.receiveMr.lkey);
    ring.producer = index + 1;
  }

  private ringSends(): void {
    if (!this.sendsWritten || this.state !== 'open') return;
    this.sendsWritten = false;
    try {
      this.qp.ringSendDoorbell();
    } catch (error) {
      this.tear(`QP1's doorbell failed: ${String(error)}`);
    }
  }

  /** Takes what is in the ring now; what arrives meanwhile has another turn. */
  private drain(): void {
    if (this.state !== 'open') return;
    this.draining = true;
    const ready = this.cq.poll();
    let received = 0;
    for (let i = 0; i < ready && this.isOpen; i++) received += this.takeCompletion();
    this.draining = false;
    if (!this.isOpen) return;
    if (received > 0) this.qp.ringReceiveDoorbell();
    this.refill();
    this.ringSends();
    this.rearm();
  }

  /** Drain, arm, look once more: an arm fires for later completions only. */
  private rearm(): void {
    if (!this.isOpen) return;
    this.cq.arm(false);
    if (this.cq.poll() > 0) this.options.scheduler.defer(() => this.drain());
  }

  private refill(): void {
    for (const request of this.overflow) {
      if (this.postedCount >= this.options.sendDepth) return;
      this.overflow.delete(request);
      this.writeSend(request);
    }
  }

  /**
   * Returns the number of receives posted anew. Cookies tell sends from receives: a failed
   * completion has no opcode.
   */
  private takeCompletion(): number {
    const ring = this.cq.ring;
    const { words } = ring;
    const at = ring.wordOf(ring.consumer);
    const status = ((words[at + CQE.CONTROL] ?? 0) & 0xff) as WcStatus;
    const index = words[at + CQE.COOKIE_LO] ?? 0;
    const isReceive = words[at + CQE.COOKIE_HI] === RECEIVE_COOKIE;
    const byteLength = words[at + CQE.BYTE_LENGTH] ?? 0;
    const sourceQpn = words[at + CQE.SOURCE_QPN] ?? 0;
    ring.consumer += 1;
    if (isReceive) return this.onReceived(status, index, byteLength, sourceQpn);
    this.onSent(status, index);
    return 0;
  }

  private onSent(status: WcStatus, index: number): void {
    const slot = index & this.qp.sendRing.mask;
    const request = this.posted[slot];
    if (!request) return;
    const follower = this.followers[slot] === 1;
    this.posted[slot] = undefined;
    this.postedCount--;
    if (status === WcStatus.SUCCESS) this.counters.sent++;
    else if (status !== WcStatus.WR_FLUSH_ERR) this.recover(status);
    else if (follower && this.isOpen && request.mayRepost()) {
      this.counters.reposted++;
      this.writeSend(request);
      return;
    }
    request.onComplete(status);
  }

  /** One request has failed: QP1 back from SQE, and who is posted now was behind it. */
  private recover(status: WcStatus): void {
    this.counters.sendErrors++;
    this.options.logger.warn(`a MAD could not be sent: ${nameOf(WcStatus, status)}`);
    for (let slot = 0; slot < this.posted.length; slot++) {
      if (this.posted[slot]) this.followers[slot] = 1;
    }
    if (this.qp.state !== QpState.SQE) return;
    try {
      this.qp.modify({ state: QpState.RTS, currentState: QpState.SQE });
    } catch (error) {
      this.tear(`QP1 stays in SQE: ${String(error)}`);
    }
  }

  private onReceived(status: number, index: number, byteLength: number, sourceQpn: number): number {
    if (status !== WcStatus.SUCCESS) {
      // QP1 is on its way to ERR, where receives are flushed: posting them again has no end.
      this.counters.receiveErrors++;
      return 0;
    }
    this.counters.received++;
    const at = (index & receiveRingOf(this.qp).mask) * RECEIVE_SLOT_BYTES;
    const addresses = grhAddresses(this.receiveArena, at);
    if (byteLength !== RECEIVED_BYTES || !addresses) {
      this.counters.malformed++;
    } else {
      this.options.onMad(this.receiveArena.subarray(at + GRH_LENGTH, at + RECEIVED_BYTES), {
        gid: addresses.source,
        localGidIndex: localIndexOf(addresses.destination, this.options.device.gids),
        qpn: sourceQpn,
        qkey: GSI_QKEY,
      });
    }
    if (this.isOpen) this.writeReceive();
    return 1;
  }

  private onEvent(event: AsyncEventType): void {
    const fatal: readonly AsyncEventType[] = [
      AsyncEventType.CQ_ERR,
      AsyncEventType.QP_FATAL,
      AsyncEventType.DEVICE_FATAL,
    ];
    if (fatal.includes(event)) this.tear(nameOf(AsyncEventType, event));
    else this.options.logger.debug(`event on QP1: ${nameOf(AsyncEventType, event)}`);
  }
}

function createQp1(
  { device, sendDepth, receiveDepth }: GsiPortOptions,
  pd: ProtectionDomain,
  cq: CompletionQueue,
  onEvent: (event: AsyncEventType) => void,
): QueuePair {
  const qp = device.createQueuePair({
    type: QpType.GSI,
    pd,
    sendCq: cq,
    receiveCq: cq,
    maxSendWr: sendDepth,
    maxReceiveWr: receiveDepth,
    maxSendSge: 1,
    maxReceiveSge: 1,
    maxInlineBytes: 0,
    context: 0,
    onEvent,
  });
  qp.modify({ state: QpState.INIT, pkeyIndex: 0, qkey: GSI_QKEY });
  qp.modify({ state: QpState.RTR });
  qp.modify({ state: QpState.RTS, sendPsn: 0 });
  return qp;
}

function receiveRingOf(qp: QueuePair): NonNullable<QueuePair['receiveRing']> {
  if (!qp.receiveRing) throw new SpiError('ENODEV', 'QP1 has no receive ring');
  return qp.receiveRing;
}

function writeSegment(
  words: Uint32Array,
  at: number,
  offset: number,
  lengthBytes: number,
  lkey: number,
): void {
  words[at + SGE.ADDRESS_LO] = offset;
  words[at + SGE.ADDRESS_HI] = 0;
  words[at + SGE.LENGTH] = lengthBytes;
  words[at + SGE.LKEY] = lkey;
}
