/** An interface adapter for one EVD under test: a fake device, virtual time, tasks run by hand. */
import {
  CQE,
  type CompletionQueue,
  type CompletionQueueInit,
  type Logger,
  type TimerEntry,
  WcStatus,
  silentLogger,
} from '../../../core/spi/index.js';
import {
  type AsyncErrorEvent,
  type CompletionOwner,
  type CompletionView,
  CompletionOwners,
  type DatEvent,
  DatEventNumber,
  type EventBatch,
  dtoOf,
  dtoStatusOf,
} from '../../../core/evd/index.js';
import type { EvdHost } from '../../../core/evd/evd-host.js';
import type { Ep } from '../../../core/dat/index.js';
import { FakeCq } from './fake-cq.js';

/** Owns completions as an endpoint does, and remembers what it was shown. */
export class FakeEndpoint implements CompletionOwner {
  readonly context: number;
  /** Cookies in the order in which `onCompletion` saw them. */
  readonly seen: number[] = [];
  /** Cookies that the consumer must not see. */
  readonly suppressed = new Set<number>();
  /** Cookies of requests that were posted UNSIGNALLED. */
  readonly silent = new Set<number>();
  onEach: (cookie: number, status: number) => void = () => undefined;

  constructor(owners: CompletionOwners) {
    this.context = owners.allocate(this);
  }

  onCompletion(words: Uint32Array, at: number): CompletionView {
    const cookie = words[at + CQE.COOKIE_LO] ?? 0;
    this.seen.push(cookie);
    const status = (words[at + CQE.CONTROL] ?? 0) & 0xff;
    this.onEach(cookie, status);
    if (this.silent.has(cookie) && status === WcStatus.SUCCESS) return 'silent';
    return !this.suppressed.has(cookie);
  }

  toEvent(words: Uint32Array, at: number): DatEvent {
    const control = words[at + CQE.CONTROL] ?? 0;
    return {
      type: 'dto',
      number: DatEventNumber.DTO_COMPLETION,
      ep: this as unknown as Ep,
      cookie: words[at + CQE.COOKIE_LO] ?? 0,
      status: dtoStatusOf(control & 0xff),
      transferredLength:
        (control & 0xff) === WcStatus.SUCCESS ? (words[at + CQE.BYTE_LENGTH] ?? 0) : 0,
      operation: dtoOf((control >>> 8) & 0xff, (control >>> 16) & 0xff),
    };
  }

  fill(batch: EventBatch, slot: number, words: Uint32Array, at: number): void {
    batch.setDto(slot, this as unknown as Ep, words, at);
  }
}

/** More than any test needs. */
const MOST_TURNS = 20_000;

export class FakeHost implements EvdHost {
  readonly cqs: FakeCq[] = [];
  readonly tasks: (() => void)[] = [];
  readonly freed: object[] = [];
  readonly async: AsyncErrorEvent[] = [];
  readonly owners = new CompletionOwners();
  readonly active = new Set<TimerEntry>();
  nowUs = 0;
  /** Reasons to live. */
  kept = 0;
  /** Index of the first entry of the next completion ring. */
  ringStart = 0;
  progressed = 0;
  onProgress: () => void = () => undefined;
  logger: Logger = silentLogger;

  readonly device = {
    attributes: { maxCompletionQueueEntries: 4096, reportsSolicited: false },
    createCompletionQueue: (init: CompletionQueueInit): CompletionQueue => {
      const cq = new FakeCq(init);
      cq.ring.producer = cq.ring.consumer = this.ringStart;
      this.cqs.push(cq);
      return cq;
    },
    progress: (): boolean => {
      this.progressed++;
      this.onProgress();
      return true;
    },
  };
  readonly clock = { now: (): number => this.nowUs };
  readonly timers = {
    start: (timer: TimerEntry, deadlineUs: number): void => {
      timer.deadlineUs = deadlineUs;
      this.active.add(timer);
    },
    stop: (timer: TimerEntry): void => {
      this.active.delete(timer);
    },
  };
  /** Handlers have had their time in this turn. */
  late = (): boolean => false;
  readonly scheduler = {
    defer: (task: () => void): void => void this.tasks.push(task),
    mayStart: (): boolean => !this.late(),
  };
  readonly processHold = {
    retain: (): void => void this.kept++,
    release: (): void => void this.kept--,
  };

  reportAsync(event: AsyncErrorEvent): void {
    this.async.push(event);
  }

  reportFailure(event: AsyncErrorEvent): void {
    this.reportAsync(event);
  }

  onCnoFreed(cno: object): void {
    this.freed.push(cno);
  }

  onEvdFreed(evd: object): void {
    this.freed.push(evd);
  }

  get cq(): FakeCq {
    const cq = this.cqs[0];
    if (cq === undefined) throw new Error('no completion queue');
    return cq;
  }

  endpoint(): FakeEndpoint {
    return new FakeEndpoint(this.owners);
  }

  /** The driver's pump, again and again until nothing moves. */
  run(): void {
    let turns = 0;
    for (let moved = true; moved;) {
      if (++turns > MOST_TURNS) throw new Error('it does not come to rest');
      moved = false;
      for (const cq of this.cqs) moved = cq.deliver() || moved;
      const task = this.tasks.shift();
      task?.();
      moved = moved || task !== undefined;
    }
  }

  /** Virtual time passes. */
  advance(ms: number): void {
    this.nowUs += ms * 1000;
    for (const timer of [...this.active]) {
      if (timer.deadlineUs > this.nowUs) continue;
      this.active.delete(timer);
      timer.expire(this.nowUs);
    }
    this.run();
  }
}

/** Lets promises settle. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 8; i++) await Promise.resolve();
}

/** Cookies of DTO events, payloads of software events, names of connection events. */
export function label(event: DatEvent | undefined): unknown {
  if (event === undefined) return undefined;
  if (event.type === 'dto') return event.cookie;
  if (event.type === 'software') return event.payload;
  return event.number;
}
