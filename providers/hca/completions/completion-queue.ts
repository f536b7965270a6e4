/**
 * Completion queue. Entries are written as they arise and published together, after their bytes
 * have been placed: one atomic store a burst, and no reader sees a completion too early.
 */
import { checkInteger } from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/errors/einval.js';
import {
  AsyncEventType,
  type CompletionQueue,
  type CompletionQueueInit,
  CQE,
  CQE_BYTES,
  type PollingMode,
  Ring,
  ringEntries,
  SpiError,
  WcFlags,
} from '../../../core/spi/index.js';
import type { Hca } from '../hca.js';
import type { Notifiable } from './notification-queue.js';

const MAX_ENTRIES = 1 << 22;
/** `deliver` argument of the notification that `arm` asked for; others are event numbers. */
const NOTIFY = -1;

/** Bits of CQE.CONTROL by which a completion counts as solicited: any error does. */
const WAKES = 0xff | (WcFlags.SOLICITED << 16);

const ARMED = { NO: 0, SOLICITED: 1, NEXT: 2 } as const;

/** A queue pair as its completion queues know it. */
export interface CompletionSource {
  onCqOverrun(): void;
}

/** The queue pair that a completion belongs to. */
export interface CompletingQueuePair {
  readonly qpn: number;
  readonly context: number;
}

export class SoftCompletionQueue implements CompletionQueue, Notifiable {
  ring: Ring;
  readonly sources = new Set<CompletionSource>();
  pollingMode: PollingMode = 'event';
  overruns = 0;
  /** Queue pairs and XRC shared receive queues that complete here. */
  users = 0;
  /** The consumer's index when it was last looked at: an atomic load costs a call. */
  private consumed = 0;
  private written = 0;
  /** First word of the completion that was pushed last; -1 when it was lost. */
  private last = -1;
  private published = 0;
  private solicited = false;
  private armed: number = ARMED.NO;
  destroyed = false;

  constructor(
    private readonly host: Hca,
    private readonly init: CompletionQueueInit,
  ) {
    this.ring = Ring.allocate(checkedEntries(init.minEntries), CQE_BYTES);
  }

  belongsTo(host: Hca): boolean {
    return this.host === host;
  }

  /**
   * Writes a completion; `publish` makes it visible. Nothing is allocated.
   * @param control status, opcode and flags: see CQE
   * @param entries words of the ring of its work request, whose cookie is at `cookieAt`
   * @returns the index of its first word, to add what else it says; -1 when it is lost
   */
  push(
    { qpn, context }: CompletingQueuePair,
    control: number,
    wqeIndex: number,
    entries: Uint32Array,
    cookieAt: number,
    byteLength: number,
  ): number {
    const ring = this.ring;
    if (this.written === this.published) this.host.completionsPending(this);
    if ((this.written - this.consumed) >>> 0 >= ring.entries) {
      this.consumed = ring.consumer;
      if ((this.written - this.consumed) >>> 0 >= ring.entries) {
        this.overruns += 1;
        return (this.last = -1);
      }
    }
    const words = ring.words;
    const at = ring.wordOf(this.written);
    words[at + CQE.CONTROL] = control;
    words[at + CQE.QPN] = qpn;
    words[at + CQE.COOKIE_LO] = entries[cookieAt]!;
    words[at + CQE.COOKIE_HI] = entries[cookieAt + 1]!;
    words[at + CQE.BYTE_LENGTH] = byteLength;
    words[at + CQE.IMMEDIATE_OR_INVALIDATE] = 0;
    words[at + CQE.SOURCE_QPN] = 0;
    words[at + CQE.VENDOR_ERROR] = 0;
    words[at + CQE.WQE_INDEX] = wqeIndex;
    words[at + CQE.SRQN] = 0;
    words[at + CQE.QP_CONTEXT] = context;
    this.written = (this.written + 1) >>> 0;
    if ((control & WAKES) !== 0) this.solicited = true;
    return (this.last = at);
  }

  /** Adds the source port to the completion of the last datagram. */
  tellSourcePort(port: number): void {
    if (this.last >= 0) this.ring.words[this.last + CQE.SOURCE_PORT] = port;
  }

  /** Makes what was pushed visible, and tells the owner if the queue is armed for it. */
  publish(): void {
    if (this.overruns > 0) this.breakDown();
    if (this.written === this.published) return;
    this.published = this.written;
    this.ring.producer = this.written;
    const fire = this.armed === ARMED.NEXT || (this.armed === ARMED.SOLICITED && this.solicited);
    this.solicited = false;
    this.host.pacer.shown = this;
    if (!fire) return;
    this.armed = ARMED.NO;
    this.host.notify(this, NOTIFY);
  }

  poll(): number {
    return this.ring.length;
  }

  /** Completions are shown that the consumer has not fetched, nor asked to be told of others. */
  get unseen(): boolean {
    return this.armed === ARMED.NO && !this.destroyed && this.ring.length > 0;
  }

  arm(solicitedOnly: boolean): void {
    if (this.destroyed) throw new SpiError('EINVAL', 'the completion queue is destroyed');
    this.armed = Math.max(this.armed, solicitedOnly ? ARMED.SOLICITED : ARMED.NEXT);
  }

  setPolling(mode: PollingMode): void {
    this.host.onPollingChanged(this.pollingMode, mode);
    this.pollingMode = mode;
  }

  resize(minEntries: number): void {
    const old = this.ring;
    // Completions that are written and not yet shown move along.
    const first = old.consumer;
    const waiting = (this.written - first) >>> 0;
    const shown = (this.published - first) >>> 0;
    if (minEntries < waiting) {
      throw new SpiError('EINVAL', `${waiting} unread completions do not fit ${minEntries}`);
    }
    const ring = Ring.allocate(checkedEntries(minEntries), CQE_BYTES);
    for (let i = 0; i < waiting; i++) {
      const from = old.wordOf(first + i);
      ring.words.set(old.words.subarray(from, from + CQE.WORDS), ring.wordOf(i));
    }
    ring.producer = shown;
    this.written = waiting;
    this.published = shown;
    this.consumed = 0;
    this.ring = ring;
  }

  destroy(): void {
    if (this.destroyed) return;
    if (this.users > 0) throw new SpiError('EBUSY', `${this.users} queues complete here`);
    this.destroyed = true;
    this.setPolling('event');
    this.host.onCqDestroyed(this);
  }

  deliver(argument: number): void {
    if (this.destroyed) return;
    if (argument === NOTIFY) this.init.onNotify();
    else this.init.onEvent(argument as AsyncEventType);
  }

  /** Reports a lost completion, and stops all queue pairs that may miss one. */
  private breakDown(): void {
    this.overruns = 0;
    this.host.notify(this, AsyncEventType.CQ_ERR);
    for (const source of this.sources) source.onCqOverrun();
    // The same event covers completions that their flushing has lost.
    this.overruns = 0;
  }
}

function checkedEntries(minEntries: number): number {
  checkInteger('minEntries', minEntries, 1, MAX_ENTRIES, einval);
  return ringEntries(minEntries);
}

export const MAX_CQ_ENTRIES = MAX_ENTRIES;
