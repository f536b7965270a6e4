// A worker thread that works over the fake and ends as it is told, by itself or in mid-air.
import { parentPort, workerData } from 'node:worker_threads';
import { Pair } from './pair.js';
import { drain, postSends } from './work.js';

const pair = new Pair();
let done = 0;
for (let i = 0; i < 100; i++) {
  postSends(pair.a, { opcode: 0, segments: [pair.at(0, 8)], remote: pair.remote(64) });
  done += drain(pair.queues['send A']).length;
}
pair.queues['send A'].arm(false);
parentPort?.postMessage(done);
if (workerData === 'close') await pair.device.close();
else if (workerData === 'terminate') setInterval(() => undefined, 1000);
