/**
 * One EVD with everything that can happen to it, small step by small step, and the rules that must
 * hold. The EVD is the real one (or a copy with a planted bug); the model beside it keeps only what
 * the rules speak of. Each point where the outcome is open asks `choose`.
 */
import type { DatEvent, Evd, Upcall, UpcallPolicy } from '../../../core/evd/index.js';
import { EvdFlags, UPCALL_SAME } from '../../../core/evd/index.js';
import { WcStatus } from '../../../core/spi/index.js';
import type { FakeCq } from './fake-cq.js';
import { type FakeEndpoint, FakeHost, settle } from './fake-host.js';
import { Fatal, Thenable, Violation } from './upcall-rules.js';

export interface Limits {
  /** A device's own thread completes at any time; otherwise only between steps. */
  readonly hardware: boolean;
  readonly completions: number;
  readonly softwareEvents: number;
  readonly armFailures: number;
  /** Upcalls that outlive their call, at a time. */
  readonly asyncUpcalls: number;
  /** Policies to enable, and what to do with events that wait. */
  readonly policies: readonly ('ONE' | 'NOTIFY' | 'MANY')[];
  readonly pending: readonly Pending[];
  /** The planted device: arming fires for what is already there. */
  readonly levelTriggered?: boolean;
}

type Pending = 'deliver' | 'keep' | 'refuse';
const ENABLED: Partial<Record<UpcallPolicy, number>> = { ONE: 1, NOTIFY: 1, MANY: 2 };
const LIMIT = 2;

interface Running {
  readonly id: number;
  readonly upcall: Upcall;
  readonly end: (error?: unknown) => void;
  waiting: boolean;
}

interface Teardown {
  readonly own: Running | undefined;
  readonly waitsFor: Set<Running>;
  resolved: boolean;
}

type Private<T> = T & Record<string, never>;

export class World {
  readonly host = new FakeHost();
  readonly evd: Evd;
  private readonly ep: FakeEndpoint;
  private readonly cq: FakeCq;
  private completed = 0;
  private posted = 0;
  private takenCompletions = 0;
  private takenSoftware = 0;
  private armFailures = 0;
  private armFailed = false;
  private freed = false;
  private policy: UpcallPolicy = 'DISABLE';
  /** A policy that a call under way is about to set. */
  private target: UpcallPolicy | undefined;
  /** That call arms before it counts, whether or not an upcall could start. */
  private refusing = false;
  /** Events that wait need not fire an upcall (keep, or NOTIFY has told of them). */
  private held = false;
  private arrivedSinceKeep = true;
  private completionsAtArm = 0;
  /** Completions there were at the first arm of a call under way, if it has armed. */
  private armedInCall: number | undefined;
  private serving = false;
  private onStack = 0;
  private polls = 0;
  private running: Running[] = [];
  private teardowns: Teardown[] = [];
  private nextId = 0;

  constructor(
    EvdClass: typeof Evd,
    private readonly limits: Limits,
    private readonly choose: (options: number) => number,
  ) {
    this.evd = new EvdClass(this.host, {
      id: 1,
      qlen: 8,
      streams: EvdFlags.DTO | EvdFlags.SOFTWARE,
    });
    this.evd.modifyUpcall('DISABLE', this.handler);
    this.ep = this.host.endpoint();
    this.cq = this.host.cq;
    this.cq.beforePoll = this.beforePoll;
    this.cq.beforeArm = this.beforeArm;
  }

  /** What can happen now. */
  actions(): [name: string, run: () => void][] {
    const list: [string, () => void][] = [];
    this.teardowns = this.teardowns.filter((teardown) => !this.isOver(teardown));
    if (this.completed < this.limits.completions && !this.freed) {
      list.push(['arrive', () => this.arrive()]);
    }
    if (this.cq.notification) list.push(['notify', () => this.serve(() => this.cq.deliver())]);
    if (this.host.tasks.length > 0) {
      list.push(['task', () => this.serve(() => this.host.tasks.shift()?.())]);
    }
    for (const upcall of this.running) {
      list.push([`end ${upcall.id}`, () => upcall.end()]);
      if (!upcall.waiting) list.push([`teardown ${upcall.id}`, () => this.teardown(upcall)]);
    }
    const [first] = this.running;
    if (first !== undefined) list.push(['reject', () => first.end(new Error('handler'))]);
    if (this.freed) return list;
    if (this.posted < this.limits.softwareEvents) list.push(['post', this.post]);
    list.push(['dequeue', this.dequeue], ['free', () => this.free(undefined)]);
    list.push(['DISABLE', () => this.modify('DISABLE', 'deliver')]);
    if (this.teardowns.length < 2) list.push(['TEARDOWN', () => this.teardown(undefined)]);
    for (const policy of this.limits.policies) {
      for (const pending of this.limits.pending) {
        list.push([`${policy} ${pending}`, () => this.modify(policy, pending)]);
      }
    }
    return list;
  }

  /** The rules that hold between steps. */
  async check(): Promise<void> {
    if (this.teardowns.length > 0) await settle();
    for (const { waitsFor, resolved } of this.teardowns) {
      const over = [...waitsFor].every((upcall) => !this.running.includes(upcall));
      if (resolved && !over)
        throw new Violation('teardown resolved while an upcall is in progress');
      if (over && !resolved) throw new Violation('teardown does not resolve');
    }
    const quiet = this.host.tasks.length === 0 && !this.cq.notification;
    if (!quiet || this.freed || this.armFailed || !this.hasRoom()) return;
    if (this.pending > 0 && !this.held) throw new Violation('an event is stranded');
    if (this.cq.armed === 'none') throw new Violation('nobody will tell of the next completion');
  }

  /** Everything that the future depends on. */
  fingerprint(): string {
    const evd = this.evd as unknown as Private<Evd>;
    const { store, upcalls, dispatcher, arm } = evd as unknown as Internals;
    const { queue, cursor } = store;
    const index = (token: unknown): number =>
      this.running.findIndex(({ upcall }) => upcall === token);
    return JSON.stringify([
      [this.completed, this.posted, this.takenCompletions, this.takenSoftware, this.armFailures],
      [this.armFailed, this.freed, this.policy, this.held, this.arrivedSinceKeep],
      this.completionsAtArm < this.completed,
      this.running.map(({ waiting, upcall }) => [waiting, upcall.waits]),
      this.teardowns
        .filter((teardown) => !this.isOver(teardown))
        .map(({ own, waitsFor }) => [
          own && index(own.upcall),
          [...waitsFor].map(({ upcall }) => index(upcall)),
        ]),
      [upcalls.gate.policy, upcalls.gate.limit, upcalls.gate.due, upcalls.gate.running.size],
      upcalls.gate.drains.map(({ own, remaining }) => [index(own), [...remaining].map(index)]),
      [dispatcher.scheduled, dispatcher.again, arm.armed, arm.failing],
      [this.cq.armed, this.cq.notification, this.host.tasks.length],
      [cursor.scanned - cursor.next, this.cq.ring.length, queue.length],
      Array.from({ length: queue.length }, (_, i) => {
        const place = queue.places[(queue.head + i) % queue.capacity] ?? 0;
        return place - cursor.next;
      }),
    ]);
  }

  private get pending(): number {
    return this.completed + this.posted - this.takenCompletions - this.takenSoftware;
  }

  private hasRoom(policy: UpcallPolicy = this.policy): boolean {
    return this.running.length + this.onStack < (ENABLED[policy] ?? 0);
  }

  private readonly arrive = (status?: number): void => {
    this.completed++;
    this.held = false;
    this.arrivedSinceKeep = true;
    const completion = { context: this.ep.context, cookie: this.completed };
    this.cq.add(status === undefined ? completion : { ...completion, status });
  };

  private readonly post = (): void => {
    this.posted++;
    this.held = false;
    this.arrivedSinceKeep = true;
    this.evd.postSe(this.posted);
  };

  private readonly dequeue = (): void => {
    this.take(this.evd.dequeue());
  };

  /** An event has been handed over: each exactly once, in the order of its stream. */
  private take(event: DatEvent | undefined): void {
    if (event === undefined) return;
    if (event.type === 'dto') {
      if (event.cookie !== ++this.takenCompletions) throw new Violation('completion out of order');
    } else if (event.type === 'software') {
      if (event.payload !== ++this.takenSoftware)
        throw new Violation('software event out of order');
    }
  }

  private modify(policy: 'DISABLE' | 'ONE' | 'NOTIFY' | 'MANY', pending: Pending): void {
    const before = this.pending;
    this.target = policy;
    this.refusing = pending === 'refuse';
    this.armedInCall = undefined;
    if (pending === 'keep') this.arrivedSinceKeep = false;
    try {
      const options = { pending, limit: LIMIT };
      if (policy === 'NOTIFY') this.evd.modifyUpcall(policy, UPCALL_SAME, options);
      else this.evd.modifyUpcall(policy, UPCALL_SAME, options);
    } catch (error) {
      this.target = undefined;
      this.refusing = false;
      if (pending !== 'refuse' || this.pending === 0) throw error;
      return;
    }
    this.target = undefined;
    if (pending === 'refuse' && before > 0) throw new Violation('enabled although events wait');
    this.policy = policy;
    this.held = pending === 'keep';
    // What was there when the queue was armed was to be counted; what came later fires an upcall.
    const counted = (this.armedInCall ?? 0) - this.takenCompletions;
    if (pending === 'refuse' && counted > 0) throw new Violation('enabled although events wait');
  }

  private teardown(own: Running | undefined): void {
    const waitsFor = new Set(this.running.filter((other) => other !== own));
    if (own !== undefined) {
      for (const other of waitsFor) if (this.waits(other)) waitsFor.delete(other);
      own.waiting = true;
    }
    const teardown: Teardown = { own, waitsFor, resolved: false };
    this.teardowns.push(teardown);
    const done = this.freed
      ? this.evd.free({ ...(own !== undefined && { upcall: own.upcall }) })
      : (own?.upcall.teardown() ?? this.evd.modifyUpcall('TEARDOWN'));
    if (!this.freed) this.policy = 'TEARDOWN';
    void done.then(() => (teardown.resolved = true));
  }

  private isOver({ waitsFor }: Teardown): boolean {
    return [...waitsFor].every((upcall) => !this.running.includes(upcall));
  }

  /** A call of this upcall waits for others at this moment. */
  private waits(upcall: Running): boolean {
    return this.teardowns.some(
      ({ own, waitsFor }) =>
        own === upcall && [...waitsFor].some((other) => this.running.includes(other)),
    );
  }

  private free(own: Running | undefined): void {
    const waitsFor = new Set(this.running.filter((other) => other !== own));
    const teardown: Teardown = { own, waitsFor, resolved: false };
    this.teardowns.push(teardown);
    const done = this.evd.free();
    this.freed = true;
    this.policy = 'TEARDOWN';
    void done.then(() => (teardown.resolved = true));
  }

  /** The driver's pump carries out one step. */
  private serve(step: () => void): void {
    if (this.cq.notification && this.completionsAtArm >= this.completed) {
      throw new Violation('notified of nothing new');
    }
    this.serving = true;
    this.polls = 0;
    step();
    this.serving = false;
  }

  private readonly beforePoll = (): void => {
    if (++this.polls > 1000) throw new Fatal('the pump does not come to rest');
    this.interfere();
  };

  private readonly beforeArm = (): void => {
    const wanted = this.hasRoom() || (this.target !== undefined && this.hasRoom(this.target));
    if (!wanted && !this.refusing) throw new Fatal('armed although nothing wants the next event');
    if (this.armFailures < this.limits.armFailures && this.choose(2) === 1) {
      this.armFailures++;
      this.armedInCall ??= this.completed;
      this.armFailed = true;
      this.cq.failArms++;
      return;
    }
    this.armFailed = false;
    this.interfere();
    this.completionsAtArm = this.completed;
    this.armedInCall ??= this.completed;
    if (this.limits.levelTriggered === true && this.cq.ring.length > 0) this.cq.fire();
  };

  /** The device's own thread completes something just now, or does not. */
  private interfere(): void {
    if (!this.limits.hardware || this.freed || this.completed >= this.limits.completions) return;
    if (this.choose(2) === 1) this.arrive();
  }

  private readonly handler = (
    event: DatEvent | undefined,
    upcall: Upcall,
  ): undefined | Thenable => {
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
    const limit = ENABLED[this.policy];
    if (limit === undefined) throw new Fatal(`an upcall started under ${this.policy}`);
    if (this.running.length >= limit) throw new Fatal(`upcalls overlap under ${this.policy}`);
    if (event === undefined && this.pending === 0) throw new Fatal('notified of an empty queue');
    if (this.held && !this.arrivedSinceKeep) throw new Fatal('kept events fired an upcall');
  }

  /** What the handler does: one thing at most, and then it ends, fails, or goes on. */
  private body(upcall: Upcall): undefined | Thenable {
    const goOn = this.running.length < this.limits.asyncUpcalls;
    const bodies: (() => undefined | Thenable)[] = [
      () => undefined,
      () => {
        throw new Error('handler');
      },
      () => this.then(this.dequeue),
      () => this.then(() => this.modify('DISABLE', 'deliver')),
      () => this.then(() => this.modify('ONE', 'keep')),
      () => this.then(() => this.free(this.enter(upcall))),
      () => this.then(() => this.teardown(this.enter(upcall))),
    ];
    if (this.completed < this.limits.completions) bodies.push(() => this.then(this.failAtOnce));
    if (goOn) bodies.push(() => this.goOn(upcall));
    const body = bodies[this.choose(bodies.length)];
    return body?.();
  }

  /** A post that completes in error at once. */
  private readonly failAtOnce = (): void => this.arrive(WcStatus.LOC_PROT_ERR);

  private then(action: () => void): undefined {
    action();
    return undefined;
  }

  /** An upcall on the stack, as the owner of a wait; it is over when its handler returns. */
  private enter(upcall: Upcall): Running {
    return { id: -1, upcall, end: () => undefined, waiting: true };
  }

  private goOn(upcall: Upcall): Thenable {
    const thenable = new Thenable();
    const running: Running = {
      id: this.nextId++ % 8,
      upcall,
      waiting: false,
      end: (error) => {
        this.running = this.running.filter((other) => other !== running);
        thenable.settle(error);
      },
    };
    this.running.push(running);
    return thenable;
  }
}

/** Private state that the fingerprint reads. */
interface Internals {
  readonly store: {
    readonly queue: { length: number; capacity: number; head: number; places: Uint32Array };
    readonly cursor: { scanned: number; next: number };
  };
  readonly upcalls: {
    readonly gate: {
      policy: string;
      limit: number;
      due: boolean;
      running: Set<unknown>;
      drains: { own: unknown; remaining: Set<unknown> }[];
    };
  };
  readonly dispatcher: { scheduled: boolean; again: boolean };
  readonly arm: { armed: number; failing: boolean };
}
