// Two worker threads with an adapter each, connected with each other.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { drive, serve } from './kill.js';
import { say } from './side.js';

const REQUESTS = '300';

export async function workers(address: string): Promise<void> {
  const server = start({ role: 'serve', address });
  const [listening] = (await once(server, 'message')) as [unknown];
  assert.equal(listening, 'listening');
  const client = start({ role: 'drive', address });
  const codes = await Promise.all([server, client].map((worker) => once(worker, 'exit')));
  assert.deepEqual(codes, [[0], [0]]);
  say('both workers have ended');
}

interface Part {
  readonly role: 'serve' | 'drive';
  readonly address: string;
}

function start(part: Part): Worker {
  const worker = new Worker(new URL(import.meta.url), { workerData: part });
  worker.on('error', (error) => {
    throw error;
  });
  return worker;
}

if (!isMainThread) {
  const { role, address } = workerData as Part;
  if (role === 'serve') await serve(address, 1, () => parentPort?.postMessage('listening'));
  else await drive(address, REQUESTS);
}
