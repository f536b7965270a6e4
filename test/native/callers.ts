/**
 * `node FILE WAY COUNT ADDRESS PORT`: ends so many threads, each inside of a call of the addon,
 * which no other thread has loaded; says how many descriptors they have left behind.
 */
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { CallerPlan } from './caller.js';
import type { WayOfCalling } from './ways-of-calling.js';

const PROGRAM = join(import.meta.dirname, 'caller.js');
const MOST_MS = 4;

const [, , way = 'ports', count = '1', address = '', port = '0'] = process.argv;

/** Not those of files: Node.js itself loses those of programs that a thread was just reading. */
const descriptors = (): number =>
  readdirSync('/proc/self/fd').filter((each) => {
    try {
      return /^(socket:|\/memfd:)/.test(readlinkSync(`/proc/self/fd/${each}`));
    } catch {
      return false;
    }
  }).length;

const before = descriptors();
for (let i = 0; i < Number(count); i++) {
  const name = `dapl-test/${process.pid}/${i}`;
  const workerData: CallerPlan = { way: way as WayOfCalling, address, udpPort: Number(port), name };
  const worker = new Worker(PROGRAM, { workerData });
  await once(worker, 'message');
  await sleep((MOST_MS * i) / Number(count));
  await worker.terminate();
}
console.log(`${descriptors() - before} left`);
