// Two worker threads with an adapter each, connected with each other. This thread has none, and
// loads nothing of the library: under emulation that takes longer than all the rest.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { say } from './say.js';

export interface Part {
  readonly role: 'serve' | 'drive';
  readonly address: string;
}

export async function workers(address: string): Promise<void> {
  const [server, client] = [start({ role: 'serve', address }), start({ role: 'drive', address })];
  const ended = Promise.all([server, client].map((worker) => once(worker, 'exit')));
  const [listening] = (await once(server, 'message')) as [unknown];
  assert.equal(listening, 'listening');
  client.postMessage('it listens');
  assert.deepEqual(await ended, [[0], [0]]);
  say('both workers have ended');
}

function start(part: Part): Worker {
  const worker = new Worker(new URL('worker.js', import.meta.url), { workerData: part });
  worker.on('error', (error) => {
    throw error;
  });
  return worker;
}
