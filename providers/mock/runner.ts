/**
 * Advances virtual time: in steps that a test requests, or by itself. Between two steps the event
 * loop turns once, so that all microtasks of a step have ended before the next one.
 */
import {
  checkNames,
  checkOptions,
  FUNCTION,
  type Kind,
  numberFrom,
  oneOf,
  optional,
  outOfRange,
} from '../../core/spi/checks/index.js';
import type { VirtualClock } from './virtual-clock.js';

export type RunOptions =
  /** Runs until nothing is pending. */
  | { readonly untilIdle: true }
  /** Exactly so many microseconds. */
  | { readonly forUs: number }
  /** Runs until the condition holds, within this many microseconds; default Infinity. */
  | { readonly until: () => boolean; readonly withinUs?: number };

/** The ways to run: by the option that each needs. */
const WAYS: readonly Readonly<Record<string, Kind>>[] = [
  { untilIdle: oneOf([true]) },
  { forUs: numberFrom(0, Number.MAX_SAFE_INTEGER) },
  { until: FUNCTION, withinUs: optional(numberFrom(0, Infinity)) },
];
const NEEDED = WAYS.map((way) => Object.keys(way)[0]!);

/** @throws RangeError */
function checkRun(options: object): void {
  checkNames(options, WAYS.flatMap(Object.keys), outOfRange);
  const ways = WAYS.filter((way) => Object.keys(way)[0]! in options);
  const [way] = ways;
  const expected = `an object with one of ${NEEDED.join(', ')}`;
  if (way === undefined || ways.length > 1) throw outOfRange('options', options, expected);
  checkOptions<object>(options, way, outOfRange);
}

/** A turn of the event loop: promises settle and their reactions run. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Longer than any program runs between two things that keep it alive; Node's own limit. */
const HOLD_MS = 0x7fffffff;

export class Runner {
  readonly auto: boolean;
  private readonly paced: boolean;
  private running = 0;
  private immediate: NodeJS.Immediate | undefined;
  private timeout: NodeJS.Timeout | undefined;
  private timeoutUs = Infinity;
  private holdReasons = 0;
  private holdTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly clock: VirtualClock,
    autoRun: boolean | 'paced',
  ) {
    this.auto = autoRun !== false;
    this.paced = autoRun === 'paced';
  }

  async run(options: RunOptions): Promise<void> {
    checkRun(options);
    this.running++;
    try {
      await turn();
      if ('forUs' in options) await this.runFor(options.forUs);
      else if ('until' in options) await this.runUntil(options.until, options.withinUs);
      else while (this.clock.step()) await turn();
    } finally {
      this.running--;
      this.schedule();
    }
  }

  /** Counts reasons to keep the process alive; they matter only while time moves by itself. */
  holdProcess(change: 1 | -1): void {
    this.holdReasons += change;
    if (!this.auto) return;
    if (this.holdReasons > 0) {
      this.holdTimer ??= setInterval(() => undefined, HOLD_MS);
    } else {
      clearInterval(this.holdTimer);
      this.holdTimer = undefined;
    }
  }

  private async runFor(forUs: number): Promise<void> {
    const endUs = this.clock.now() + forUs;
    while (this.clock.nextUs <= endUs) {
      this.clock.step();
      await turn();
    }
    this.clock.skipTo(endUs);
  }

  private async runUntil(condition: () => boolean, withinUs = Infinity): Promise<void> {
    const startUs = this.clock.now();
    while (!condition()) {
      const nextUs = this.clock.nextUs;
      if (nextUs === Infinity) {
        throw new Error(`the condition is false, and nothing happens after ${startUs} us`);
      }
      if (nextUs > startUs + withinUs) {
        throw new Error(`the condition is still false after ${withinUs} us of virtual time`);
      }
      this.clock.step();
      await turn();
    }
  }

  /** Something new is to happen: where time moves by itself, it will. */
  schedule(): void {
    if (!this.auto || this.immediate || this.running > 0) return;
    const { nextUs } = this.clock;
    if (nextUs >= this.timeoutUs) return;
    const aheadMs = this.paced ? (nextUs - this.clock.now()) / 1000 : 0;
    if (aheadMs >= 1) this.sleep(nextUs, Math.min(aheadMs, HOLD_MS));
    else this.immediate = setImmediate(() => this.autoStep());
  }

  /** Waits in real time; whether that keeps the process alive is said by `holdProcess` alone. */
  private sleep(untilUs: number, delayMs: number): void {
    clearTimeout(this.timeout);
    this.timeoutUs = untilUs;
    this.timeout = setTimeout(() => this.autoStep(), delayMs).unref();
  }

  private autoStep(): void {
    clearTimeout(this.timeout);
    this.timeout = this.immediate = undefined;
    this.timeoutUs = Infinity;
    if (this.running > 0) return;
    try {
      this.clock.step();
    } finally {
      this.schedule();
    }
  }
}
