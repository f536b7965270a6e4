// One of two worker threads (workers.ts): an adapter of its own, which serves or drives.
import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { drive, serve } from './kill.js';
import type { Part } from './workers.js';

const REQUESTS = '300';

const { role, address } = workerData as Part;
if (role === 'serve') {
  await serve(address, 1, () => parentPort?.postMessage('listening'));
} else {
  // Loaded while the other one is, and told when that one listens.
  if (parentPort !== null) await once(parentPort, 'message');
  await drive(address, REQUESTS);
}
