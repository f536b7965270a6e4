/**
 * The port's list of posted sends. It knows work requests and bytes; agents, responses and timeouts
 * are not its business.
 *
 * At most `sendDepth` requests are on QP1, further ones wait on the overflow list. A request that
 * fails in transmission puts QP1 (a datagram QP) in SQE: the port takes it back to RTS, reports the
 * request that failed, and posts again those that were flushed behind it (design of October 2004).
 * QP1 itself in error is restarted: what was on it comes back flushed, or is posted again if it was
 * behind a failed one; what waits for room, for a response or for requests notices nothing. Only a
 * device that is gone, or that does not let QP1 live, ends the port: then everything comes back.
 */
import { assert } from '../../core/spi/checks/index.js';
import {
  type AddressHandle,
  AsyncEventType,
  type Clock,
  type Device,
  type Gid,
  GRH_LENGTH,
  grhAddresses,
  GSI_QKEY,
  localIndexOf,
  type Logger,
  type MadAddress,
  nameOf,
  type ProtectionDomain,
  QpState,
  type Scheduler,
  Timer,
  type Timers,
  WcStatus,
} from '../../core/spi/index.js';
import type { MadPort, PortAddress, WorkRequest } from './port.js';
import { Qp1, RECEIVED_BYTES } from './qp1.js';

/**
 * Address handles of QP1, one a destination. A handle in use by a send stays; idle ones are kept
 * for the next send to the same place, up to a bound, and the one unused for longest goes first.
 */
interface CachedAddress extends PortAddress {
  readonly key: string;
  readonly object: AddressHandle;
  users: number;
}

export class AddressHandles {
  // A Map iterates in order of insertion; each use inserts anew: the first idle one is the oldest.
  private readonly byKey = new Map<string, CachedAddress>();

  constructor(
    private readonly device: Device,
    private readonly pd: ProtectionDomain,
    private readonly maxIdle: number,
  ) {}

  get size(): number {
    return this.byKey.size;
  }

  /** @throws SpiError when the device cannot reach the GID */
  acquire(gid: Gid, localGidIndex: number): CachedAddress {
    const key = `${localGidIndex}:${gid.join('.')}`;
    let cached = this.byKey.get(key);
    if (cached) {
      this.byKey.delete(key);
    } else {
      const to = { gid: gid.slice(), localGidIndex };
      const object = this.device.createAddressHandle(this.pd, to);
      cached = { ...to, key, object, handle: object.handle, users: 0 };
    }
    cached.users++;
    this.byKey.set(key, cached);
    return cached;
  }

  release(cached: CachedAddress): void {
    assert(cached.users > 0, 'an address handle is released once', cached.key);
    cached.users--;
    if (this.byKey.size > this.maxIdle) this.evict();
  }

  /** Destroys all of them, in use or not. */
  close(): void {
    for (const { object } of this.byKey.values()) object.destroy();
    this.byKey.clear();
  }

  private evict(): void {
    for (const cached of this.byKey.values()) {
      if (this.byKey.size <= this.maxIdle) return;
      if (cached.users > 0) continue;
      this.byKey.delete(cached.key);
      cached.object.destroy();
    }
  }
}

/** MADs that have come and wait for their turn; their bytes stay in QP1's receives until then. */
type TakeMad = (index: number, byteLength: number, sourceQpn: number, sourcePort: number) => void;

/** Words of an entry: the parameters of TakeMad. */
const WORDS = 4;

class ReceivedQueue {
  private readonly words: Uint32Array;
  private readonly mask: number;
  private head = 0;
  private tail = 0;

  /** @param entries of QP1's receive queue, a power of two: no more can wait */
  constructor(entries: number) {
    this.words = new Uint32Array(WORDS * entries);
    this.mask = entries - 1;
  }

  get length(): number {
    return this.tail - this.head;
  }

  push(index: number, byteLength: number, sourceQpn: number, sourcePort: number): void {
    const at = WORDS * (this.tail++ & this.mask);
    this.words[at] = index;
    this.words[at + 1] = byteLength;
    this.words[at + 2] = sourceQpn;
    this.words[at + 3] = sourcePort;
  }

  /** Takes the oldest; there must be one. */
  take(onMad: TakeMad): void {
    const at = WORDS * (this.head++ & this.mask);
    onMad(this.words[at]!, this.words[at + 1]!, this.words[at + 2]!, this.words[at + 3]!);
  }
}

export interface GsiPortOptions {
  readonly device: Device;
  readonly scheduler: Scheduler;
  readonly timers: Timers;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly sendDepth: number;
  readonly receiveDepth: number;
  readonly maxIdleAddresses: number;
  readonly onMad: (data: Uint8Array, source: MadAddress) => void;
  /** QP1 is lost for good. What is posted comes back flushed, as the scheduler's next task. */
  readonly onTorn: () => void;
}

/**
 * MADs that are taken in between two looks at the device, where data may have come: 40 to 60 us
 * each, so that data waits for a millisecond. The rest waits in QP1's receives, and what finds none
 * is lost, and counted there.
 */
const MADS_A_TURN = 16;

const FATAL: readonly AsyncEventType[] = [AsyncEventType.CQ_ERR, AsyncEventType.DEVICE_FATAL];
/** Restarts with nothing sent or received in between: after that QP1 is given up. */
const MOST_RESTARTS = 8;

/** Counters of sends and receives on QP1. */
export interface MadPortCounters {
  sent: number;
  sendErrors: number;
  /** Sends that were behind a failed one, and went again. */
  reposted: number;
  received: number;
  receiveErrors: number;
  /** MADs that came in too short or too long. */
  malformed: number;
  /** Times that QP1 was taken out of ERR. */
  restarts: number;
}

export class GsiPort implements MadPort {
  readonly counters: MadPortCounters = {
    sent: 0,
    sendErrors: 0,
    reposted: 0,
    received: 0,
    receiveErrors: 0,
    malformed: 0,
    restarts: 0,
  };
  readonly addresses: AddressHandles;
  private state: 'open' | 'torn' | 'closed' = 'open';
  private readonly qp1: Qp1;
  /** By slot, in the order in which they were posted. */
  private readonly posted = new Map<number, WorkRequest>();
  /** Those of them that were behind a failed request, so that a flush of them means "again". */
  private readonly followers = new Set<WorkRequest>();
  /** Followers that go again when QP1 has been restarted. */
  private readonly returning = new Set<WorkRequest>();
  private readonly overflow = new Set<WorkRequest>();
  private readonly waiting: ReceivedQueue;
  private draining = false;
  /** It ends: QP1 in error is as it shall be. */
  private flushing = false;
  /** QP1 is on its way through RESET: what is posted now waits. */
  private restarting = false;
  private vainRestarts = 0;
  private sendsWritten = false;
  /** Timers run after the next look at the device, and deferred tasks may run before it. */
  private readonly nextTurn = new Timer(() => this.options.scheduler.defer(() => this.drain()));

  /** @throws SpiError when the device refuses QP1 */
  constructor(private readonly options: GsiPortOptions) {
    const { device, sendDepth, receiveDepth, maxIdleAddresses } = options;
    this.qp1 = new Qp1({
      device,
      sendDepth,
      receiveDepth,
      onNotify: () => this.drain(),
      onEvent: (event) => this.onEvent(event),
    });
    this.waiting = new ReceivedQueue(this.qp1.receiveSlots);
    this.addresses = new AddressHandles(device, this.qp1.pd, maxIdleAddresses);
  }

  get isOpen(): boolean {
    return this.state === 'open';
  }

  /** Room for a request that may as well be dropped: nothing waits for it. */
  get hasRoom(): boolean {
    if (!this.isOpen || this.restarting) return false;
    return this.posted.size < this.options.sendDepth && this.overflow.size === 0;
  }

  /** Posts a request, or puts it on the overflow list. On a lost port it comes back flushed. */
  post(request: WorkRequest): void {
    if (!this.isOpen) {
      this.options.scheduler.defer(() => request.onComplete(WcStatus.WR_FLUSH_ERR));
    } else if (!this.hasRoom) {
      this.overflow.add(request);
    } else {
      this.writeSend(request);
      if (!this.draining) this.guard('the doorbell of sends', () => this.ringSends());
    }
  }

  /** Takes a request back that waits; false when it is on QP1 and must complete first. */
  withdraw(request: WorkRequest): boolean {
    return this.overflow.delete(request) || this.returning.delete(request);
  }

  /** Moves QP1 to ERR: everything posted completes as flushed. */
  flush(): void {
    this.flushing = true;
    if (this.isOpen) this.guard('flushing', () => this.qp1.flush());
  }

  /** Gives QP1 up. What is on it will not complete any more, so it comes back from here. */
  tear(reason: string): void {
    if (!this.isOpen) return;
    this.state = 'torn';
    this.options.timers.stop(this.nextTurn);
    this.options.logger.warn(`MAD port lost: ${reason}`);
    const left = [...this.returning, ...this.posted.values(), ...this.overflow];
    for (const list of [this.returning, this.posted, this.overflow]) list.clear();
    this.options.scheduler.defer(() => {
      for (const request of left) request.onComplete(WcStatus.WR_FLUSH_ERR);
    });
    this.options.onTorn();
  }

  /** Ends QP1. What the device has destroyed already is passed over. */
  close(): void {
    if (this.state === 'closed') return;
    const torn = this.state === 'torn';
    this.state = 'closed';
    this.options.timers.stop(this.nextTurn);
    const { qp1, addresses } = this;
    for (const step of [...qp1.endSteps(), () => addresses.close(), () => qp1.pd.destroy()]) {
      try {
        step();
      } catch (error) {
        if (!torn) this.options.logger.error(`closing QP1: ${String(error)}`);
      }
    }
  }

  private writeSend(request: WorkRequest): void {
    const { address, qpn, qkey, data } = request;
    const slot = this.qp1.writeSend(data, { handle: address.handle, qpn, qkey });
    this.posted.set(slot, request);
    this.sendsWritten = true;
  }

  private ringSends(): void {
    if (!this.sendsWritten || !this.isOpen) return;
    this.sendsWritten = false;
    this.qp1.ringSends();
  }

  /** A device that is gone may refuse anything: that ends the port and nothing else. */
  private guard(what: string, step: () => void): void {
    try {
      step();
    } catch (error) {
      this.tear(`${what} failed on QP1: ${String(error)}`);
    }
  }

  private drain(): void {
    if (!this.isOpen) return;
    this.draining = true;
    this.guard('polling', () => this.takeTurn());
    this.draining = false;
    this.guard('arming', () => this.afterDrain());
  }

  /** Takes what is in the ring now, and a turn's MADs; what arrives meanwhile has another turn. */
  private takeTurn(): void {
    for (let ready = this.qp1.poll(); ready > 0 && this.isOpen; ready--) this.takeCompletion();
    const { waiting } = this;
    let taken = 0;
    for (; taken < MADS_A_TURN && waiting.length > 0 && this.isOpen; taken++) {
      waiting.take(this.takeMad);
    }
    if (this.isOpen && taken > 0) this.qp1.ringReceives();
  }

  /**
   * QP1 has gone to ERR: through RESET back to RTS. What it has completed counts; what it will not
   * complete any more comes back flushed, but for followers of a failed request.
   */
  private restart(): void {
    if (this.flushing || this.vainRestarts === MOST_RESTARTS) {
      this.tear('QP1 is in error');
      return;
    }
    this.vainRestarts++;
    this.counters.restarts++;
    this.options.logger.warn('QP1 is in error, and restarted');
    this.restarting = true;
    this.qp1.reset();
    for (let ready = this.qp1.poll(); ready > 0; ready--) this.takeCompletion();
    // Its receives are posted anew: what waits in them is taken before.
    while (this.waiting.length > 0) this.waiting.take(this.takeMad);
    this.returnLost();
    if (this.isOpen) this.qp1.start();
    this.restarting = false;
  }

  /**
   * Handles sends that QP1 lost in the reset. Those after the failed one are reposted, ahead of
   * requests that wait for room; the others complete as flushed.
   */
  private returnLost(): void {
    const { posted, followers, returning, overflow } = this;
    const lost: WorkRequest[] = [];
    for (const request of posted.values()) {
      if (followers.has(request) && request.mayRepost()) this.repost(request);
      else lost.push(request);
    }
    const waiting = [...returning, ...overflow];
    for (const list of [posted, followers, returning, overflow]) list.clear();
    for (const request of waiting) overflow.add(request);
    for (const request of lost) request.onComplete(WcStatus.WR_FLUSH_ERR);
  }

  private repost(request: WorkRequest): void {
    this.counters.reposted++;
    if (this.restarting) this.returning.add(request);
    else this.writeSend(request);
  }

  /** Drain, arm, look once more: an arm fires for later completions only. */
  private afterDrain(): void {
    if (!this.isOpen) return;
    if (this.qp1.state === QpState.ERR) this.restart();
    if (!this.isOpen) return;
    this.refill();
    this.ringSends();
    this.qp1.arm();
    if (this.waiting.length + this.qp1.poll() > 0)
      this.options.timers.start(this.nextTurn, this.options.clock.now());
  }

  private refill(): void {
    for (const request of this.overflow) {
      if (this.posted.size >= this.options.sendDepth) return;
      this.overflow.delete(request);
      this.writeSend(request);
    }
  }

  private takeCompletion(): void {
    const { isReceive, status, index, byteLength, sourceQpn, sourcePort } = this.qp1.take();
    if (!isReceive) this.onSent(status, this.qp1.slotOf(index));
    else if (status === WcStatus.SUCCESS) {
      this.waiting.push(index, byteLength, sourceQpn, sourcePort);
    }
    // QP1 is on its way to ERR, where receives are flushed: posting them again has no end.
    else this.counters.receiveErrors++;
  }

  private onSent(status: WcStatus, slot: number): void {
    const request = this.posted.get(slot);
    if (!request) return;
    this.posted.delete(slot);
    const follower = this.followers.delete(request);
    if (status === WcStatus.SUCCESS) {
      this.counters.sent++;
      this.vainRestarts = 0;
    } else if (status !== WcStatus.WR_FLUSH_ERR || this.qp1.state === QpState.SQE) {
      // A flushed send stops QP1 too where it is the first that failed.
      this.recover(status);
    }
    if (follower && status === WcStatus.WR_FLUSH_ERR && this.isOpen && request.mayRepost()) {
      this.repost(request);
      return;
    }
    request.onComplete(status);
  }

  /** One request has failed: QP1 back from SQE, and what is posted now was behind it. */
  private recover(status: WcStatus): void {
    this.counters.sendErrors++;
    this.options.logger.warn(`a MAD could not be sent: ${nameOf(WcStatus, status)}`);
    for (const request of this.posted.values()) this.followers.add(request);
    if (this.qp1.state === QpState.SQE) this.guard('leaving SQE', () => this.qp1.resume());
  }

  /** Its receive is posted anew. */
  private readonly takeMad: TakeMad = (index, byteLength, sourceQpn, sourcePort) => {
    this.counters.received++;
    this.vainRestarts = 0;
    const bytes = this.qp1.received(index);
    const addresses = grhAddresses(bytes);
    if (byteLength !== RECEIVED_BYTES || !addresses) {
      this.counters.malformed++;
    } else {
      this.options.onMad(bytes.subarray(GRH_LENGTH), {
        gid: addresses.source,
        localGidIndex: localIndexOf(addresses.destination, this.options.device.gids),
        qpn: sourceQpn,
        qkey: GSI_QKEY,
        ...(sourcePort !== 0 && { udpPort: sourcePort }),
      });
    }
    if (this.isOpen && !this.restarting) this.qp1.writeReceive();
  };

  private onEvent(event: AsyncEventType): void {
    if (FATAL.includes(event)) this.tear(nameOf(AsyncEventType, event));
    else if (event === AsyncEventType.QP_FATAL) this.drain();
    else this.options.logger.debug(`event on QP1: ${nameOf(AsyncEventType, event)}`);
  }
}
