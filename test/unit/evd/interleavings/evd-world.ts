/**
 * One EVD with everything that can happen to it, small step by small step, and the rules that must
 * hold. The EVD is the real one (or a copy with a planted bug); the model beside it keeps only what
 * the rules speak of. Each point where the outcome is open asks `choose`.
 */
import {
  type DatEvent,
  type Evd,
  EvdFlags,
  type Upcall,
  UPCALL_SAME,
  type UpcallPolicy,
} from '../../../../core/evd/index.js';
import { WcStatus } from '../../../../core/spi/index.js';
import type { FakeCq } from '../fake-cq.js';
import { type FakeEndpoint, FakeHost, settle } from '../fake-host.js';
import { CnoModel } from './cno-model.js';
import { EndingModel } from './ending-model.js';
import { fingerprintOf, internalsOf, orderUpcalls } from './fingerprint.js';
import { Fatal, Violation } from './rules.js';
import { goOn, type Running } from './running.js';
import type { Action, Searchable } from './search.js';
import type { Core, Enabled, Pending, Space } from './space.js';
import { TakerModel } from './taker-model.js';

const CAPACITY = 8;

export class EvdWorld implements Searchable {
  readonly host = new FakeHost();
  readonly evd: Evd;
  readonly ep: FakeEndpoint;
  readonly cq: FakeCq;
  readonly takers: TakerModel;
  readonly cno: CnoModel | undefined;
  readonly endings: EndingModel;
  running: Running[] = [];
  freed = false;
  policy: UpcallPolicy = 'DISABLE';
  enabled = true;
  /** Events that wait need not fire an upcall (keep, or NOTIFY has told of them). */
  held = false;
  arrivedSinceKeep = true;
  armFailed = false;
  /** Notifications absorbed since something last wanted events. */
  stale = 0;
  private completed = 0;
  private posted = 0;
  private takenCompletions = 0;
  private takenSoftware = 0;
  /** A policy that a call under way is about to set. */
  private target: UpcallPolicy | undefined;
  /** That call arms before it counts, whether or not an upcall could start. */
  private refusing = false;
  private completionsAtArm = 0;
  /** Completions there were at the first arm of a call under way, if it has armed. */
  private armedInCall: number | undefined;
  private serving = false;
  private onStack = 0;
  private polls = 0;
  /** Completions that came during the step under way. */
  private arrivals = 0;
  /** Upcalls that the step under way has started. */
  private upcalls = 0;

  constructor(
    core: Core,
    readonly space: Space,
    private readonly choose: (options: number) => number,
  ) {
    this.evd = new core.Evd(this.host, {
      id: 1,
      qlen: CAPACITY,
      streams: EvdFlags.DTO | (space.software ? EvdFlags.SOFTWARE : 0),
    });
    this.evd.modifyUpcall('DISABLE', this.handler);
    this.ep = this.host.endpoint();
    this.cq = this.host.cq;
    this.cq.beforePoll = this.beforePoll;
    this.cq.beforeArm = this.beforeArm;
    this.takers = new TakerModel(this);
    this.cno = space.cno ? new CnoModel(this, core) : undefined;
    this.endings = new EndingModel(this, core);
  }

  // What can happen

  actions(): readonly Action[] {
    const list: Action[] = [];
    if (this.mayArrive) list.push(['arrive', () => this.arrive()]);
    if (this.cq.notification) list.push(['notify', () => this.serve(() => this.cq.deliver())]);
    if (this.host.tasks.length > 0) {
      list.push(['task', () => this.serve(() => this.host.tasks.shift()?.())]);
    }
    this.running.forEach((upcall, i) => this.actionsOf(upcall, i, list));
    list.push(...(this.cno?.actions() ?? []));
    if (this.freed) return list;
    this.takers.addActions(list);
    this.addCalls(list);
    return list;
  }

  private actionsOf(upcall: Running, i: number, list: Action[]): void {
    list.push([`end ${i}`, () => upcall.end()]);
    list.push([`reject ${i}`, () => upcall.end(new Error('handler'))]);
    if (this.endings.waits(upcall)) return;
    const { behindAwait } = upcall;
    if (behindAwait !== undefined && !this.freed) {
      list.push([`await free ${i}`, () => behindAwait(() => this.endings.free(upcall))]);
      list.push([`await TEARDOWN ${i}`, () => behindAwait(() => this.teardown(upcall, true))]);
    }
    list.push([`teardown ${i}`, () => this.teardown(upcall)]);
    if (this.space.close) list.push([`close ${i}`, () => this.endings.close(upcall)]);
  }

  private addCalls(list: Action[]): void {
    if (this.mayArrive && this.space.software) list.push(['post', this.post]);
    list.push(['dequeue', this.dequeue], ['free', () => this.endings.free(undefined)]);
    if (this.space.close) list.push(['close', () => this.endings.close(undefined)]);
    list.push(['DISABLE', () => this.modify('DISABLE', 'deliver')]);
    if (!this.endings.isTornDown) list.push(['TEARDOWN', () => this.teardown(undefined)]);
    if (this.takers.present !== 'none') return;
    for (const policy of this.space.policies) {
      for (const pending of this.space.pending) {
        list.push([`${policy} ${pending}`, () => this.modify(policy, pending)]);
      }
    }
  }

  // Rules between steps

  async check(): Promise<void> {
    this.arrivals = 0;
    this.upcalls = 0;
    const { isAsync = false } = this.space;
    if (isAsync || this.endings.list.length > 0 || this.takers.waits || this.cno?.waits === true)
      await settle();
    if (this.endings.areJoint) for (let i = 0; i < 8; i++) await settle();
    if (this.evd.isFreed && !this.freed) this.ended();
    this.endings.check();
    this.running = orderUpcalls(this);
    this.checkCount();
    if (this.wanted) this.stale = 0;
    const quiet = this.host.tasks.length === 0 && !this.cq.notification;
    if (!quiet) return;
    this.cno?.checkQuiet();
    if (this.freed || this.armFailed) return;
    this.takers.checkQuiet();
    if (this.hasRoom() && this.pending > 0 && !this.held) {
      throw new Violation('an event is stranded');
    }
    if (this.wanted && this.cq.armed === 'none') {
      throw new Violation('nobody will tell of the next completion');
    }
  }

  /** Each event is with exactly one taker, or still there. */
  private checkCount(): void {
    if (this.freed) return;
    const { queue, cursor } = internalsOf(this.evd).store;
    const there = queue.length + ((this.cq.ring.producer - this.cq.ring.consumer) >>> 0);
    if (cursor.scanning || there !== this.pending) {
      throw new Violation(`${this.pending} events were not taken, ${there} are there`);
    }
  }

  fingerprint(): string {
    return fingerprintOf(this);
  }

  get pending(): number {
    return this.completed + this.posted - this.takenCompletions - this.takenSoftware;
  }

  /** The device tells of something that came after the last arm. */
  get newerThanArm(): boolean {
    return this.completionsAtArm < this.completed;
  }

  hasRoom(policy: UpcallPolicy = this.policy): boolean {
    if (!this.enabled) return false;
    const limits: Partial<Record<UpcallPolicy, number>> = {
      ONE: 1,
      NOTIFY: 1,
      MANY: Math.max(this.space.asyncUpcalls, 1),
    };
    return this.running.length + this.onStack < (limits[policy] ?? 0);
  }

  /** Something wants the next event. */
  private get wanted(): boolean {
    if (this.freed) return false;
    return this.hasRoom() || this.takers.wants || this.cno?.wants === true;
  }

  get isUpcallEnabled(): boolean {
    const policy = this.target ?? this.policy;
    return policy === 'ONE' || policy === 'NOTIFY' || policy === 'MANY';
  }

  // Events

  get mayArrive(): boolean {
    return !this.freed && this.pending < this.space.events;
  }

  /** Within a step that is under way; without a limit a pump might go on for ever. */
  private get mayArriveNow(): boolean {
    return this.mayArrive && this.arrivals < this.space.arrivals;
  }

  private readonly arrive = (status?: number): void => {
    this.completed++;
    this.arrivals++;
    this.somethingNew();
    const completion = { context: this.ep.context, cookie: this.completed };
    this.cq.add(status === undefined ? completion : { ...completion, status });
  };

  private readonly post = (): void => {
    this.posted++;
    this.somethingNew();
    this.evd.postSe(this.posted);
  };

  private somethingNew(): void {
    this.held = false;
    this.arrivedSinceKeep = true;
    this.cno?.somethingNew();
  }

  private readonly dequeue = (): void => {
    this.take(this.evd.dequeue());
  };

  /** An event has been handed over: each exactly once, in the order of its stream. */
  take(event: DatEvent | undefined): void {
    if (event === undefined) return;
    if (event.type === 'dto') {
      if (event.cookie !== ++this.takenCompletions) throw new Fatal('completion out of order');
    } else if (event.type === 'software') {
      if (event.payload !== ++this.takenSoftware) throw new Fatal('software event out of order');
    }
    this.ep.seen.length = 0;
  }

  /** A subscriber gets an event; it may end the subscription, or the EVD. */
  onPushed(event: DatEvent): void {
    if (!this.serving) throw new Fatal("a subscriber is called inside a consumer's call");
    if (this.onStack > 0) throw new Fatal('the trigger recurses');
    this.take(event);
    this.onStack++;
    const bodies = [
      () => undefined,
      () => this.takers.unsubscribe(),
      () => this.endings.free(undefined),
      ...(this.mayArriveNow ? [() => this.arrive(WcStatus.LOC_PROT_ERR)] : []),
    ];
    bodies[this.choose(bodies.length)]?.();
    this.onStack--;
  }

  // Calls

  private modify(policy: 'DISABLE' | Enabled, pending: Pending): void {
    const before = this.pending;
    this.target = policy;
    this.refusing = pending === 'refuse';
    this.armedInCall = undefined;
    if (pending === 'keep') this.arrivedSinceKeep = false;
    try {
      const limit = Math.max(this.space.asyncUpcalls, 1);
      const options = policy === 'MANY' ? { pending, limit } : { pending };
      if (policy === 'DISABLE') this.evd.modifyUpcall(policy, UPCALL_SAME);
      else if (policy === 'NOTIFY') this.evd.modifyUpcall(policy, UPCALL_SAME, options);
      else this.evd.modifyUpcall(policy, UPCALL_SAME, options);
    } catch (error) {
      if (pending !== 'refuse' || this.pending === 0) throw error;
      this.stale = 0;
      return;
    } finally {
      this.target = undefined;
      this.refusing = false;
    }
    if (pending === 'refuse' && before > 0) throw new Violation('enabled although events wait');
    this.policy = policy;
    this.held = pending === 'keep';
    // What was there when the queue was armed was to be counted; what came later fires an upcall.
    const counted = (this.armedInCall ?? 0) - this.takenCompletions;
    if (pending === 'refuse' && counted > 0) throw new Violation('enabled although events wait');
  }

  private teardown(own: Running | undefined, isUnnamed = false): void {
    this.target = 'TEARDOWN';
    this.endings.teardown(own, isUnnamed);
    this.target = undefined;
    if (!this.freed) this.policy = 'TEARDOWN';
  }

  /** The EVD has been freed, by whatever. */
  ended(): void {
    this.freed = true;
    this.policy = 'TEARDOWN';
    this.takers.freed();
    this.cno?.evdFreed();
  }

  // The driver and the device

  /** The driver's pump carries out one step. */
  serve(step: () => void): void {
    if (this.cq.notification) this.beforeNotification();
    this.serving = true;
    this.polls = 0;
    step();
    this.serving = false;
  }

  private beforeNotification(): void {
    if (!this.newerThanArm) throw new Violation('notified of nothing new');
    if (this.wanted || this.freed) return;
    if (this.stale > 0) throw new Violation('more than one stale notification');
  }

  private readonly beforePoll = (): void => {
    if (++this.polls > 1000) throw new Fatal('the pump does not come to rest');
    this.interfere();
  };

  private readonly beforeArm = (): void => {
    const wanted = this.wanted || (this.target !== undefined && this.hasRoom(this.target));
    if (!wanted && !this.refusing) throw new Fatal('armed although nothing wants the next event');
    if (this.space.armFailures && this.choose(2) === 1) {
      this.armedInCall ??= this.completed;
      this.armFailed = true;
      this.cq.failArms = 1;
      return;
    }
    this.armFailed = false;
    this.interfere();
    this.completionsAtArm = this.completed;
    this.armedInCall ??= this.completed;
    if (this.space.levelTriggered === true && this.cq.ring.length > 0) this.cq.fire();
  };

  /** The device's own thread completes something just now, or does not. */
  private interfere(): void {
    if (this.space.hardware && this.mayArriveNow && this.choose(2) === 1) this.arrive();
  }

  // Upcalls

  private readonly handler = (
    event: DatEvent | undefined,
    upcall: Upcall,
  ): undefined | PromiseLike<void> => {
    this.checkStart(event);
    this.take(event);
    if (event === undefined) this.held = true;
    this.onStack++;
    try {
      return this.body(upcall);
    } finally {
      this.onStack--;
    }
  };

  private checkStart(event: DatEvent | undefined): void {
    if (!this.serving) throw new Fatal("an upcall started inside a consumer's call");
    if (this.onStack > 0) throw new Fatal('the trigger recurses');
    if (!this.isUpcallEnabled) throw new Fatal(`an upcall started under ${this.policy}`);
    if (!this.enabled) throw new Fatal('an upcall started while the EVD is disabled');
    if (!this.hasRoom()) throw new Fatal(`upcalls overlap under ${this.policy}`);
    if (event === undefined && this.pending === 0) throw new Fatal('notified of an empty queue');
    if (this.held && !this.arrivedSinceKeep) throw new Fatal('kept events fired an upcall');
  }

  /** What the handler does: one thing at most, and then it ends, fails, or goes on. */
  private body(upcall: Upcall): undefined | PromiseLike<void> {
    const { space } = this;
    const enter = (): Running => ({ upcall, end: () => undefined });
    const bodies: (() => void | PromiseLike<void>)[] = [
      () => undefined,
      () => {
        throw new Error('handler');
      },
      this.dequeue,
      () => this.modify('DISABLE', 'deliver'),
      () => this.endings.free(enter()),
      () => this.teardown(enter()),
    ];
    if (space.close) bodies.push(() => this.endings.close(enter()));
    // Under NOTIFY each of these may start the next upcall, for ever.
    if (++this.upcalls <= 2) {
      for (const policy of space.policies) {
        for (const pending of space.pending) bodies.push(() => this.modify(policy, pending));
      }
    }
    if (this.mayArriveNow) bodies.push(this.postInVain);
    if (this.running.length < space.asyncUpcalls) bodies.push(() => goOn(this, upcall));
    return bodies[this.choose(bodies.length)]?.() ?? undefined;
  }

  /** A post that completes in error at once; the endpoint looks for it, to make room. */
  private readonly postInVain = (): void => {
    this.arrive(WcStatus.LOC_PROT_ERR);
    this.evd.feed.scan();
  };
}
