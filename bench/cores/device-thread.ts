/** The device on a worker thread; a message rings its doorbell. */
import { parentPort, workerData } from 'node:worker_threads';
import { openDevice } from './device.js';
import { FINISHED, GIVEN, type Job } from './job.js';

export interface DeviceThreadData {
  readonly job: Job;
  readonly memory: SharedArrayBuffer;
  readonly words: Int32Array;
}

const { job, memory, words } = workerData as DeviceThreadData;
const give = await openDevice(job, memory, (count) => {
  Atomics.add(words, FINISHED, count);
  Atomics.notify(words, FINISHED);
});
let given = 0;
parentPort!.on('message', () => {
  const now = Atomics.load(words, GIVEN);
  give((now - given) | 0);
  given = now;
});
parentPort!.postMessage('open');
