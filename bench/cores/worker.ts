/**
 * A process of the benchmark: a consumer, with its device on the same thread or on a worker. It
 * says "open"; a client then runs for its time and reports, a server when it is told to.
 */
import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { crc32 } from 'node:zlib';
import { StreamClock } from '../compare/stream-clock.js';
import type { DeviceThreadData } from './device-thread.js';
import { openDevice } from './device.js';
import { FINISHED, GIVEN, type Job, type Result, WORDS } from './job.js';

/** How long a consumer that has nothing to do sleeps before it looks whether it is to end. */
const LOOK_MS = 20;
/** Times that it is woken between two turns of its event loop. */
const LOOKS = 64;

class Consumer {
  over = false;
  private messages = 0;
  private readonly clock: StreamClock;
  private readonly cpuBefore = process.cpuUsage();

  constructor(
    private readonly job: Job,
    private readonly bytes: Uint8Array,
  ) {
    this.clock = new StreamClock(job.seconds);
  }

  /** Uses the next `count` messages, in their order. */
  take(count: number): void {
    const { messageBytes, depth, checksum, role } = this.job;
    for (let i = 0; i < count; i++) {
      const at = (this.messages % depth) * messageBytes;
      if (checksum) crc32(this.bytes.subarray(at, at + messageBytes));
      this.messages += 1;
    }
    if (role === 'client' && this.clock.isOver(this.messages)) this.over = true;
  }

  result(): Result {
    const count = this.clock.count(this.messages);
    const { user, system } = process.cpuUsage(this.cpuBefore);
    return { ...count, cpuSeconds: (user + system) / 1e6 };
  }
}

/** What is told to a process of its parent: a server ends. */
function onStop(stop: () => void): void {
  process.once('message', stop);
}

async function onOneThread(job: Job, memory: SharedArrayBuffer): Promise<Result> {
  const bytes = new Uint8Array(memory);
  let consumer = new Consumer(job, bytes);
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const give = await openDevice(job, memory, (count) => {
    consumer.take(count);
    if (consumer.over) end();
    else give(count);
  });
  // Connecting does not count.
  consumer = new Consumer(job, bytes);
  onStop(end);
  give(job.depth);
  process.send?.('open');
  await ended;
  return consumer.result();
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

process.once('disconnect', () => process.exit(0));
const job = JSON.parse(process.argv[2] ?? '') as Job;
const memory = new SharedArrayBuffer(job.depth * job.messageBytes);
new Uint8Array(memory).fill(1);
const result = await (job.mode === 'worker' ? overThreads : onOneThread)(job, memory);
// The benchmark ends this process when it has read that; or it has gone itself.
process.send?.(result);
