import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MAX_SLOWDOWN } from '../support/patience.js';
import {
  MachineTime,
  REFERENCE_JOB_MS,
  shareGot,
  type ThreadTime,
  threadTimeIn,
} from './machine-time.js';
import { repositoryRoot } from './paths.js';

/** A machine with one thread of ours, which always works, and others that take their share. */
class Machine {
  nowMs = 0;
  /** The part of a processor that our thread gets. */
  share = 1;
  jobMs = REFERENCE_JOB_MS;
  private readonly timers = new Set<{ readonly atMs: number; readonly task: () => void }>();
  private thread: ThreadTime = { runMs: 0, waitMs: 0 };
  readonly time = new MachineTime({
    now: () => this.nowMs,
    usage: () => new Map([['1/1', this.thread]]),
    knownJobMs: () => this.jobMs,
    setTimer: (task, ms) => {
      const timer = { atMs: this.nowMs + ms, task };
      this.timers.add(timer);
      return () => this.timers.delete(timer);
    },
  });

  pass(realMs: number): void {
    for (const endMs = this.nowMs + realMs; this.nowMs < endMs;) {
      this.nowMs += 10;
      const { runMs, waitMs } = this.thread;
      const got = 10 * this.share;
      this.thread = { runMs: runMs + got, waitMs: waitMs + 10 - got };
      for (const timer of [...this.timers]) {
        if (timer.atMs > this.nowMs) continue;
        this.timers.delete(timer);
        timer.task();
      }
    }
  }

  /** Real milliseconds until a bound of that length ends. */
  endOf(boundMs: number): number {
    let ended = false;
    const startMs = this.nowMs;
    this.time.after(boundMs, () => (ended = true));
    while (!ended) this.pass(10);
    return this.nowMs - startMs;
  }
}

function near(actual: number, expected: number): void {
  assert.ok(Math.abs(actual - expected) <= 0.05 * expected + 20, `${actual}, not ${expected}`);
}

describe('guest: bounds that know the machine', () => {
  it('are what they say on an idle machine', () => {
    near(new Machine().endOf(5000), 5000);
  });

  it('are longer by what others have had of the processors', () => {
    const machine = new Machine();
    machine.share = 0.2;
    near(machine.endOf(5000), 25_000);
    near(machine.time.slowdown, 5);
  });

  it('follow the load while they run', () => {
    const machine = new Machine();
    let ended = false;
    machine.time.after(10_000, () => (ended = true));
    machine.pass(5000);
    machine.share = 0.25;
    machine.pass(19_000);
    assert.equal(ended, false);
    machine.pass(2000);
    assert.equal(ended, true);
  });

  it('are longer on a slower processor, also when it becomes slower', () => {
    const machine = new Machine();
    machine.jobMs = 3 * REFERENCE_JOB_MS;
    near(machine.endOf(5000), 15_000);
    machine.jobMs = 6 * REFERENCE_JOB_MS;
    machine.pass(20_000);
    near(machine.endOf(60_000), 360_000);
  });

  it('end at last, however slow the machine', () => {
    const machine = new Machine();
    machine.share = 0.0001;
    near(machine.endOf(1000), MAX_SLOWDOWN * 1000);
  });

  it('do not end when they are called off', () => {
    const machine = new Machine();
    const cancel = machine.time.after(3000, () => assert.fail('called off'));
    machine.pass(2000);
    cancel();
    machine.pass(10_000);
  });

  it('count no wait of who waits for a timer or a packet, and all of who is kept waiting', () => {
    const usage = (runMs: number, waitMs: number): Map<string, ThreadTime> =>
      new Map([['7/8', { runMs, waitMs }]]);
    assert.equal(shareGot(usage(5, 5), usage(5, 5), 1000), 1);
    near(1000 * shareGot(usage(0, 0), usage(1, 1), 1000), 999);
    assert.equal(shareGot(usage(10, 10), usage(260, 760), 1000), 0.25);
    // Two threads that wait for each other's processor: the machine has two.
    const two = new Map([...usage(500, 500), ['7/9', { runMs: 500, waitMs: 500 }]]);
    assert.equal(shareGot(usage(0, 0), two, 1000), 0.5);
  });

  it('read what the kernel tells of a thread', () => {
    assert.deepEqual(threadTimeIn('2500000 500000 7\n'), { runMs: 2.5, waitMs: 0.5 });
    const { runMs } = threadTimeIn(readFileSync('/proc/self/schedstat', 'utf8'));
    assert.ok(runMs > 0, `${runMs}`);
  });

  // Timers of its own; what has bounds asks machine-time.ts, what runs in a guest `patience`.
  const OWN = ['machine-time.ts', 'sandbox.ts', 'agent.ts'];
  // What these do is timed by themselves: a benchmark, and programs without a bound.
  const APART = ['bench/perftest.ts', 'bench/workers.ts', 'peer/main.ts', 'peer/corners.ts'];

  it('are all the bounds there are: nothing else in the suite has a timer or a clock', () => {
    const root = join(repositoryRoot, 'test', 'guest');
    const naked = /\bsetTimeout\(|performance\.now\(\) \+|Date\.now\(\) \+|seq .*&& exit\b.*sleep/;
    const found = readdirSync(root, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
      .filter((name) => ![...OWN, ...APART].includes(name))
      .flatMap((name) => {
        const lines = readFileSync(join(root, name), 'utf8').split('\n');
        return lines.flatMap((line, at) =>
          naked.test(line) && !line.includes('patience(')
            ? [`${name}:${at + 1}: ${line.trim()}`]
            : [],
        );
      });
    assert.deepEqual(found, []);
  });

  it('are asked for in the programs as well: no wait of theirs has a number of its own', () => {
    const root = join(repositoryRoot, 'test', 'guest');
    const found = ['peer', 'life', 'verbs', 'differential'].flatMap((directory) =>
      readdirSync(join(root, directory))
        .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
        .flatMap((name) => {
          const text = readFileSync(join(root, directory, name), 'utf8');
          const waits = text.match(/(?:wait|connect)\([^;]*timeoutMs: [\d_]+ *[,}]/g) ?? [];
          return waits.map((wait) => `${directory}/${name}: ${wait}`);
        }),
    );
    assert.deepEqual(found, []);
  });
});
