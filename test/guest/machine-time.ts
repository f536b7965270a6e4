/**
 * Bounds that know the machine. They are stated in milliseconds of an idle one, and count only the
 * time that ours have had of the processors: what they waited for a processor, the kernel tells of
 * each thread (/proc/PID/task/TID/schedstat, see proc(5)), and how fast a processor is, a known job
 * tells. So a loaded machine makes no case fail, and what hangs ends as soon as on an idle one.
 */
import { readdirSync, readFileSync } from 'node:fs';

import { MAX_SLOWDOWN, paused, SLOWDOWN_VARIABLE } from '../support/patience.js';

/** Of one thread, since it began: on a processor, and ready for one that others had. */
export interface ThreadTime {
  readonly runMs: number;
  readonly waitMs: number;
}

/** By process and thread. */
export type Usage = ReadonlyMap<string, ThreadTime>;

export interface MachineTimeInit {
  /** Milliseconds of real time. */
  readonly now: () => number;
  /** Of all threads whose work the bounds are about. */
  readonly usage: () => Usage;
  /** Milliseconds of a processor that the known job takes. */
  readonly knownJobMs: () => number;
  readonly setTimer: (task: () => void, ms: number) => () => void;
}

/** What the known job takes on the machine that the bounds were chosen on. */
export const REFERENCE_JOB_MS = 6;
/** How long a bound goes without a look at the clock: threads that end take their times along. */
const LOOK_MS = 1000;
const SHORTEST_LOOK_MS = 20;
/** The known job is done again this long after the last time, while there are bounds. */
const JOB_AGAIN_MS = 10_000;
/** Over how much real time `slowdown` is measured. */
const RECENT_MS = 5000;
/** The load may grow while a program runs; what hangs is ended by the bound of its case. */
const PROGRAM_MARGIN = 2;
const NEARLY_IDLE = 1.2;

export class MachineTime {
  private atMs: number;
  private usage: Usage;
  private countedMs = 0;
  private processor = 1;
  private jobAtMs = -Infinity;
  /** Real and machine time where the recent past began, and where it will begin next. */
  private recent: readonly [number, number];
  private next: readonly [number, number];

  constructor(private readonly init: MachineTimeInit) {
    this.atMs = init.now();
    this.usage = init.usage();
    this.recent = this.next = [this.atMs, 0];
  }

  /** Milliseconds that an idle machine would have needed for what ours have got done. */
  get elapsedMs(): number {
    const nowMs = this.init.now();
    const realMs = nowMs - this.atMs;
    if (realMs <= 0) return this.countedMs;
    if (nowMs - this.jobAtMs >= JOB_AGAIN_MS) this.measureProcessor(nowMs);
    const usage = this.init.usage();
    const share = shareGot(this.usage, usage, realMs);
    this.countedMs += Math.max(share / this.processor, 1 / MAX_SLOWDOWN) * realMs;
    this.atMs = nowMs;
    this.usage = usage;
    if (nowMs - this.next[0] >= RECENT_MS) {
      this.recent = this.next;
      this.next = [nowMs, this.countedMs];
    }
    return this.countedMs;
  }

  /** How many times as long as on an idle machine things have taken in the last seconds. */
  get slowdown(): number {
    const elapsedMs = this.elapsedMs - this.recent[1];
    const realMs = this.atMs - this.recent[0];
    return elapsedMs > 0 ? Math.max(1, realMs / elapsedMs) : 1;
  }

  /**
   * Does a task when that much time of the machine has gone.
   * @returns calls it off
   */
  after(ms: number, task: () => void): () => void {
    const endMs = this.elapsedMs + ms;
    let cancel = (): void => undefined;
    const look = (): void => {
      const leftMs = endMs - this.elapsedMs;
      if (leftMs <= 0) task();
      else cancel = this.init.setTimer(look, clamp(leftMs, SHORTEST_LOOK_MS, LOOK_MS));
    };
    cancel = this.init.setTimer(look, clamp(ms, 0, LOOK_MS));
    return () => cancel();
  }

  private measureProcessor(nowMs: number): void {
    this.jobAtMs = nowMs;
    const slowdown = this.init.knownJobMs() / REFERENCE_JOB_MS;
    this.processor = clamp(slowdown, 1, MAX_SLOWDOWN);
  }
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}

/**
 * The part of the time that was not spent waiting for a processor, from 0 to 1. Threads that work
 * all the time have got `run` of `run + wait`; one that waits for a packet loses nothing.
 */
export function shareGot(before: Usage, after: Usage, realMs: number): number {
  let runMs = 0;
  let waitMs = 0;
  for (const [thread, now] of after) {
    const then = before.get(thread);
    runMs += Math.max(0, now.runMs - (then?.runMs ?? 0));
    waitMs += Math.max(0, now.waitMs - (then?.waitMs ?? 0));
  }
  const wantedMs = runMs + waitMs;
  if (wantedMs === 0) return 1;
  return 1 - (waitMs / wantedMs) * Math.min(1, wantedMs / realMs);
}

/** @param schedstat nanoseconds run, nanoseconds waited, time slices */
export function threadTimeIn(schedstat: string): ThreadTime {
  const [run = 0, wait = 0] = schedstat.split(' ').map(Number);
  return { runMs: run / 1e6, waitMs: wait / 1e6 };
}

/** All threads that /proc shows: in the sandbox, those of the run. */
function readUsage(): Usage {
  const usage = new Map<string, ThreadTime>();
  for (const pid of listed('/proc').filter((name) => /^\d+$/.test(name))) {
    for (const tid of listed(`/proc/${pid}/task`)) {
      try {
        const text = readFileSync(`/proc/${pid}/task/${tid}/schedstat`, 'utf8');
        usage.set(`${pid}/${tid}`, threadTimeIn(text));
      } catch {
        // It has ended since, or the kernel keeps no such numbers: then it waits for nothing.
      }
    }
  }
  return usage;
}

function listed(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** A job of always the same length, by the time of the processor; the best of a few. */
function knownJobMs(): number {
  let best = Infinity;
  for (let round = 0; round < 5; round++) {
    const before = process.cpuUsage();
    let word = 1;
    for (let i = 0; i < 4_000_000; i++) word = (Math.imul(word, 1664525) + 1013904223) >>> 0;
    const { user, system } = process.cpuUsage(before);
    if (word >= 0) best = Math.min(best, (user + system) / 1000);
  }
  return best;
}

/** Of this run. */
export const machineTime = new MachineTime({
  now: () => performance.now(),
  usage: readUsage,
  knownJobMs,
  setTimer: (task, ms) => {
    const timer = setTimeout(task, ms);
    return () => clearTimeout(timer);
  },
});

/** From what a program prints before it listens until it does. */
export const LISTENS_MS = 500;

/** Lets that much time of the machine go by: for what has no event to wait for. */
export function settled(ms: number): Promise<void> {
  return new Promise((resolve) => void machineTime.after(ms, resolve));
}

/** Programs that a case starts cannot see what else the machine does: this tells them. */
export function slowdownVariable(): Readonly<Record<string, string>> {
  const { slowdown } = machineTime;
  const told = slowdown < NEARLY_IDLE ? 1 : PROGRAM_MARGIN * slowdown;
  return { [SLOWDOWN_VARIABLE]: told.toFixed(1) };
}

/** Looks again and again. @throws Error what `complain` says, when it has not come true in time */
export async function becomesTrue(
  isSo: () => boolean | Promise<boolean>,
  ms: number,
  complain: () => string,
): Promise<void> {
  const endMs = machineTime.elapsedMs + ms;
  while (!(await isSo())) {
    if (machineTime.elapsedMs >= endMs) throw new Error(complain());
    await paused(100);
  }
}
