import assert from 'node:assert/strict';
import { runSample } from './program.js';
import { inBlock0, loopback, networkOf } from '../support/loopback.js';

describe('xrc', () => {
  it('M receiver processes, P sender nodes: P connections, every message verified', async () => {
    const args = ['--receivers', '3', '--senders', '2', '--messages', '40'];
    const { code, stdout, stderr } = await runSample('xrc', ...args, '--network', networkOf(9));
    assert.equal(stderr, '');
    assert.equal(code, 0);
    assert.match(inBlock0(stdout), /^3 receivers at 127\.0\.9\.1, port 7475$/m);
    for (const sender of [1, 2]) {
      const line = `sender ${sender}: 120 messages to 3 receivers, 1 queue pair`;
      assert.ok(stdout.includes(line), stdout);
    }
    for (const receiver of [0, 1, 2]) {
      assert.ok(stdout.includes(`receiver ${receiver}: 80 messages verified`), stdout);
    }
    assert.match(stdout, /^240 messages verified, by 3 receivers$/m);
    assert.match(stdout, /^node of the receivers +2 +6$/m);
    assert.match(stdout, /^each sender node +1 +3$/m);
    assert.match(stdout, /^in all +4 +12$/m);
  });

  it('says in a sentence that nobody listens', async () => {
    const { code, stderr } = await runSample(
      'xrc',
      'send',
      '--address',
      loopback(9, 7),
      '--to',
      loopback(9, 8),
    );
    assert.equal(code, 1);
    assert.match(stderr, /^xrc: no connection: \w+\n$/);
  });
});
