/**
 * The port's list of posted sends. It knows work requests and bytes, but not agents, responses or
 * timeouts.
 *
 * At most `sendDepth` requests are on QP1; others wait on the overflow list. A request that fails
 * in transmission puts QP1 (a datagram QP) in SQE. The port then returns QP1 to RTS, reports the
 * failed request, and reposts those that were flushed behind it (design of October 2004). If QP1
 * itself goes to error, it is restarted: its requests are flushed, or reposted if they were behind
 * a failed one; requests that wait for room, for a response or for other requests are not affected.
 * The port ends only if the device is gone, or does not allow QP1 to work: then all requests are
 * flushed.
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
 * Cache of QP1's address handles, one for each destination. A handle in use by a send stays. Idle
 * ones are kept for later sends, up to a limit; the least recently used one is destroyed first.
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

  /** Destroys all handles, used or idle. */
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

/** Received MADs that wait to be handled; their bytes stay in QP1's receives until then. */
type TakeMad = (index: number, byteLength: number, sourceQpn: number, sourcePort: number) => void;

/** Words of an entry: the parameters of TakeMad. */
const WORDS = 4;

class ReceivedQueue {
  private readonly words: Uint32Array;
  private readonly mask: number;
  private head = 0;
  private tail = 0;

  /** @param entries depth of QP1's receive queue, a power of two: no more MADs can wait */
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

  /** Takes the oldest MAD; there must be one. */
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
  /** QP1 is lost for good. Posted requests are flushed in the scheduler's next task. */
  readonly onTorn: () => void;
}

/**
 * MADs handled between two polls of the device. Each takes 40 to 60 us, so that data waits for up
 * to a millisecond. The others wait in QP1's receives; those that find no receive are lost, and
 * counted there.
 */
const MADS_A_TURN = 16;

const FATAL: readonly AsyncEventType[] = [AsyncEventType.CQ_ERR, AsyncEventType.DEVICE_FATAL];
/** Restarts in a row without any traffic after which QP1 is given up. */
const MOST_RESTARTS = 8;

/** Counters of sends and receives on QP1. */
export interface MadPortCounters {
  sent: number;
  sendErrors: number;
  /** Sends behind a failed one that were reposted. */
  reposted: number;
  received: number;
  receiveErrors: number;
  /** Received MADs that were too short or too long. */
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
  /** Posted requests by slot, in the order of posting. */
  private readonly posted = new Map<number, WorkRequest>();
  /** Posted requests that were behind a failed one: they are reposted when flushed. */
  private readonly followers = new Set<WorkRequest>();
  /** Requests to repost when QP1 has been restarted. */
  private readonly returning = new Set<WorkRequest>();
  private readonly overflow = new Set<WorkRequest>();
  private readonly waiting: ReceivedQueue;
  private draining = false;
  /** True while the port ends: QP1 stays in error. */
  private flushing = false;
  /** True while QP1 goes through RESET: new requests wait. */
  private restarting = false;
  private vainRestarts = 0;
  private sendsWritten = false;
  /**
   * Runs the next turn. Timers run after the next poll of the device; deferred tasks may run before
   * it.
   */
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

  /** True if there is room for a request that may as well be dropped: it is not queued. */
  get hasRoom(): boolean {
    if (!this.isOpen || this.restarting) return false;
    return this.posted.size < this.options.sendDepth && this.overflow.size === 0;
  }

  /** Posts a request, or puts it on the overflow list. On a lost port it is flushed. */
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

  /** Withdraws a waiting request; false if it is on QP1 and must complete first. */
  withdraw(request: WorkRequest): boolean {
    return this.overflow.delete(request) || this.returning.delete(request);
  }

  /** Moves QP1 to ERR: everything posted completes as flushed. */
  flush(): void {
    this.flushing = true;
    if (this.isOpen) this.guard('flushing', () => this.qp1.flush());
  }

  /** Gives QP1 up. Its requests will not complete any more, so they are flushed here. */
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

  /** Destroys QP1. Objects that the device has destroyed already are skipped. */
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

  /**
   * Runs a step. A device that is gone may refuse anything: that ends the port, and nothing else.
   */
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

  /**
   * Handles the completions in the ring now, and one turn's MADs; later ones wait for the next
   * turn.
   */
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
   * Takes QP1 from ERR through RESET back to RTS. Its completions count. Requests without one are
   * flushed, except those behind a failed request.
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
    // Its receives are posted again: MADs that wait in them are handled first.
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
    // QP1 is going to ERR, where receives are flushed: reposting them would never end.
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
      // A flushed send also stops QP1 if it is the first that failed.
      this.recover(status);
    }
    if (follower && status === WcStatus.WR_FLUSH_ERR && this.isOpen && request.mayRepost()) {
      this.repost(request);
      return;
    }
    request.onComplete(status);
  }

  /**
   * Handles a failed request: takes QP1 back from SQE. Requests posted now were behind the failed
   * one.
   */
  private recover(status: WcStatus): void {
    this.counters.sendErrors++;
    this.options.logger.warn(`a MAD could not be sent: ${nameOf(WcStatus, status)}`);
    for (const request of this.posted.values()) this.followers.add(request);
    if (this.qp1.state === QpState.SQE) this.guard('leaving SQE', () => this.qp1.resume());
  }

  /** Handles a MAD, and posts its receive again. */
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
