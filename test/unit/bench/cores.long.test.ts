import assert from 'node:assert/strict';
import { MODES } from '../../../bench/cores/job.js';
import { measure } from '../../../bench/cores/main.js';
import { networkOf } from '../../support/loopback.js';

describe('bench:cores', () => {
  for (const mode of MODES) {
    it(`measures two pairs at once: ${mode}`, async () => {
      const load = { messageBytes: 4096, depth: 4, checksum: true, pairs: 2 };
      const { gbPerSecond, cpuPerGib } = await measure(load, mode, 0.05, networkOf(23));
      assert.ok(gbPerSecond > 0 && Number.isFinite(gbPerSecond));
      assert.ok(cpuPerGib > 0 && Number.isFinite(cpuPerGib));
    });
  }
});
