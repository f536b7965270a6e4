// Connections over librdmacm in worker threads, which may end at any time.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { CmHost, loadCmFake } from '../../fake-verbs/cm-host.js';

const script = join(import.meta.dirname, '../../fake-verbs/cm-worker.js');

describe('verbs: librdmacm in worker threads', () => {
  it('a thread that is ended gives back what it had, and disturbs no other', async () => {
    loadCmFake().reset();
    const mine = new CmHost();
    const worker = new Worker(script);
    const [message] = (await once(worker, 'message')) as [string];
    assert.equal(message, 'ready');
    const withWorker = loadCmFake().live();
    await worker.terminate();
    const left = loadCmFake().live();
    assert.ok(left < withWorker, `${left} of ${withWorker} are left`);
    await mine.pair();
    await mine.close();
    assert.equal(loadCmFake().live(), 0);
  });
});
