/**
 * The pure state of an EVD's upcalls: which handler may be called when. It knows no queue, device
 * or promise, so that a test can search all its steps. The rules are those of `UPCALL_POLICIES`.
 */
import { UPCALL_POLICIES, type UpcallPolicy } from './policy.js';
import type { Upcall } from './upcall.js';

interface Drain {
  readonly remaining: Set<Upcall>;
  readonly own: Upcall | undefined;
  readonly done: () => void;
  /** Several upcalls may wait in one call: the close of an adapter. */
  readonly joint: boolean;
}

export class UpcallGate {
  policy: UpcallPolicy = 'DISABLE';
  /** Upcalls that may be in progress at a time under the present policy. */
  limit = 0;
  /**
   * An upcall is due. Set by each new event and by enabling with `deliver`. Reset by enabling with
   * `keep`, when the queue has run empty, and under NOTIFY by the start of the one call that
   * reports it.
   */
  due = false;
  /** True while the EVD is DISABLED: no upcall starts until it is enabled again. */
  blocked = false;
  /** Unordered. A Set would allocate a new table for every second upcall. */
  private readonly running: Upcall[] = [];
  private readonly drains: Drain[] = [];

  get enabled(): boolean {
    return UPCALL_POLICIES[this.policy].enabled;
  }

  get carriesEvent(): boolean {
    return UPCALL_POLICIES[this.policy].carriesEvent;
  }

  get inProgress(): number {
    return this.running.length;
  }

  /** True if the next event would start an upcall. */
  get wantsNext(): boolean {
    return !this.blocked && this.running.length < this.limit;
  }

  /** A new event is queued. */
  arrived(): void {
    this.due = true;
  }

  mayStart(pending: number): boolean {
    return this.due && pending > 0 && this.wantsNext;
  }

  /** An upcall starts. */
  begin(token: Upcall): void {
    if (!this.carriesEvent) this.due = false;
    this.running.push(token);
  }

  /** An upcall has ended: its handler has returned, and its promise has settled. */
  end(token: Upcall): void {
    const at = this.running.lastIndexOf(token);
    if (at < 0) return;
    const last = this.running.pop();
    if (last !== undefined && at < this.running.length) this.running[at] = last;
    if (this.drains.length === 0) return;
    for (const drain of [...this.drains]) {
      drain.remaining.delete(token);
      this.finish(drain);
    }
  }

  /** @param limit upcalls at a time, for a policy that leaves it to the consumer */
  setPolicy(policy: UpcallPolicy, limit: number, deliverPending: boolean): void {
    this.policy = policy;
    this.limit = UPCALL_POLICIES[policy].limit ?? limit;
    this.due = deliverPending;
  }

  /**
   * Calls `done`, once, when the upcalls in progress now have ended. `own`, the calling upcall, is
   * not waited for, nor are others that wait likewise. The last to ask finds all others waiting, so
   * there is no circular wait.
   */
  drain(own: Upcall | undefined, done: () => void): void {
    const remaining = new Set(this.running);
    if (own !== undefined) {
      remaining.delete(own);
      for (const token of remaining) if (token.waits > 0) remaining.delete(token);
      own.waits++;
    }
    this.start({ remaining, own, done, joint: false });
  }

  /**
   * As above for the close of an adapter, which several upcalls may wait for: neither `callers`,
   * nor those that join later, are waited for.
   */
  drainJointly(callers: ReadonlySet<Upcall>, done: () => void): void {
    const remaining = new Set(this.running);
    for (const token of callers) this.leave(remaining, token);
    this.start({ remaining, own: undefined, done, joint: true });
  }

  /** This upcall also waits for the adapter to be closed. */
  join(token: Upcall): void {
    for (const drain of [...this.drains]) {
      if (!drain.joint) continue;
      this.leave(drain.remaining, token);
      this.finish(drain);
    }
  }

  private leave(remaining: Set<Upcall>, token: Upcall): void {
    // Never removed: after the close, nothing can wait for this upcall.
    if (remaining.delete(token)) token.waits++;
  }

  private start(drain: Drain): void {
    this.drains.push(drain);
    this.finish(drain);
  }

  private finish(drain: Drain): void {
    if (drain.remaining.size > 0) return;
    const at = this.drains.indexOf(drain);
    if (at < 0) return;
    this.drains.splice(at, 1);
    if (drain.own !== undefined) drain.own.waits--;
    drain.done();
  }
}
