/**
 * A process of the benchmark: a consumer, with its device on the same thread or on a worker. It
 * says "open"; a client then runs for its time and reports, a server when it is told to.
 */
import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { DeviceThreadData } from './device-thread.js';
import { Consumer, memoryOf } from './consumer.js';
import { FINISHED, GIVEN, type Job, type Result, WORDS } from './job.js';
import { onOneThread } from './one-thread.js';

/** How long a consumer that has nothing to do sleeps before it looks whether it is to end. */
const LOOK_MS = 20;
/** Times that it is woken between two turns of its event loop. */
const LOOKS = 64;

/** What is told to a process of its parent: a server ends. */
function onStop(stop: () => void): void {
  process.once('message', stop);
}

/** A thread for each pair. */
async function inSlots(all: Job): Promise<Result> {
  const threads = Array.from({ length: all.threads }, (_, thread) => {
    const workerData: Job = { ...all, thread };
    return new Worker(new URL('slot-thread.js', import.meta.url), { workerData });
  });
  const opened = threads.map((thread) => once(thread, 'message'));
  // A thread may be through before another has begun.
  const results = threads.map(async (thread, i) => {
    await opened[i];
    const [result] = (await once(thread, 'message')) as [Result];
    return result;
  });
  await Promise.all(opened);
  // Starting threads does not count.
  const before = process.cpuUsage();
  onStop(() => threads.forEach((thread) => thread.postMessage('stop')));
  process.send?.('open');
  const each = await Promise.all(results);
  const { user, system } = process.cpuUsage(before);
  const sum = (of: (result: Result) => number): number => each.reduce((all, r) => all + of(r), 0);
  const seconds = sum((result) => result.seconds) / each.length;
  return {
    messages: sum(({ messages }) => messages),
    counted: sum((result) => (result.counted / result.seconds) * seconds),
    seconds,
    cpuSeconds: (user + system) / 1e6,
  };
}

async function overThreads(job: Job, memory: SharedArrayBuffer): Promise<Result> {
  const words = new Int32Array(new SharedArrayBuffer(WORDS * 4));
  const workerData: DeviceThreadData = { job, memory, words };
  const worker = new Worker(new URL('device-thread.js', import.meta.url), { workerData });
  await once(worker, 'message');
  const consumer = new Consumer(job, new Uint8Array(memory));
  onStop(() => (consumer.over = true));
  let taken = 0;
  const give = (count: number): void => {
    Atomics.add(words, GIVEN, count);
    worker.postMessage('given');
  };
  give(job.depth);
  process.send?.('open');
  for (let looks = 1; !consumer.over; looks++) {
    const slept = Atomics.wait(words, FINISHED, taken, LOOK_MS) === 'timed-out';
    const count = (Atomics.load(words, FINISHED) - taken) | 0;
    taken = (taken + count) | 0;
    consumer.take(count);
    if (count > 0 && !consumer.over) give(count);
    if (slept || looks % LOOKS === 0) await nextTurn();
  }
  return consumer.result();
}

function perform(job: Job): Promise<Result> {
  switch (job.mode) {
    case 'slots':
      return inSlots(job);
    case 'worker':
      return overThreads(job, memoryOf(job));
    case 'one thread':
      return onOneThread(job, onStop, () => process.send?.('open'));
  }
}

process.once('disconnect', () => process.exit(0));
const job = JSON.parse(process.argv[2] ?? '') as Job;
const result = await perform(job);
// The benchmark ends this process when it has read that; or it has gone itself.
process.send?.(result);
