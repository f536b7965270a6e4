/** A thread of a process whose threads have slots of one address: an end of one pair. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Job } from './job.js';
import { onOneThread } from './one-thread.js';

const port = parentPort!;
const result = await onOneThread(
  workerData as Job,
  (stop) => port.once('message', stop),
  () => port.postMessage('open'),
);
port.postMessage(result);
