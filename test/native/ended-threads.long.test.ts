/**
 * Threads that are ended inside of a call of the addon: the runtime then makes no objects any more,
 * and unloads what no thread has.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { loopback, testPort } from '../support/loopback.js';
import { WAYS_OF_CALLING } from './ways-of-calling.js';

const PROGRAM = join(import.meta.dirname, 'callers.js');
const THREADS = 24;

describe('threads that are ended inside of a call of the addon', function () {
  this.timeout(120_000);

  for (const way of WAYS_OF_CALLING) {
    it(`leave nothing behind, and do no harm: ${way}`, () => {
      const words = [PROGRAM, way, THREADS, loopback(92, 1), testPort(41)].map(String);
      const { status, signal, stdout } = spawnSync(process.execPath, words, { encoding: 'utf8' });
      assert.deepEqual({ status, signal, stdout }, { status: 0, signal: null, stdout: '0 left\n' });
    });
  }
});
