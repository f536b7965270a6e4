/** Peers that say for ever that they are reading memory which is withdrawn from them. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { CHANNEL_MTU_BYTES, type Gid, gidFromIp } from '../../core/spi/index.js';
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import type { SocketPort } from '../../providers/softroce/port/port-options.js';
import { channelsOf } from '../support/joined-ports.js';
import { loopback, testPort } from '../support/loopback.js';
import { patience } from '../support/patience.js';
import { nothing } from '../../plugins/testing/port/bench-pair.js';
import { header, pattern, sendAll } from '../../plugins/testing/port/harness.js';
import { HostileHalf, lies } from './hostile-half.js';

const UDP_PORT = testPort(39);
const PEERS = 6;
const QPN = 17;
/** The event loop waits so long for all of them together: docs/shm.md. */
const BUDGET_MS = 200;
const REST_MS = 2000;

describe('a port whose peers stall', () => {
  let victim: SocketPort;
  let region: number;
  let peers: readonly { readonly hostile: HostileHalf; readonly gid: Gid }[];

  beforeEach(() => {
    const options = { udpPort: UDP_PORT, shm: { bounceBytes: 2 << 20, ringSlots: 64 } };
    victim = openNativePort({ addresses: [loopback(0, 41)], ...options });
    victim.watch(nothing);
    const memory = new Uint8Array(victim.allocate!(CHANNEL_MTU_BYTES));
    memory.set(pattern(memory.length));
    region = victim.addRegion(memory.buffer, 0, memory.length);
    peers = Array.from({ length: PEERS }, (_, i) => {
      const gid = gidFromIp(loopback(0, 42 + i));
      const hostile = new HostileHalf(victim, gid, UDP_PORT, lies(i + 1));
      return { hostile, gid };
    });
  });

  afterEach(() => victim.close());

  /** Each peer holds a request of ours; how long it takes to have all of them back. */
  async function withdrawFromAll(): Promise<number> {
    const paths: number[] = [];
    for (const { hostile, gid } of peers) {
      hostile.meet();
      // A path leads through the channel that there is: not through one that has ended.
      const path = victim.addPath(gid, 0, CHANNEL_MTU_BYTES);
      paths.push(path);
      for (let segment = 0; segment < 4; segment++) {
        channelsOf(victim).useSegment(hostile.channel, segment);
      }
      const bytes = header(1);
      bytes.set([0x04], 0);
      bytes.set([0, 0, QPN], 5);
      const segments = [{ region, offset: 0, length: 100_000 }];
      await sendAll(victim, [{ path, header: bytes, segments }]);
      hostile.stall();
    }
    const fromMs = performance.now();
    for (const path of paths) victim.withdraw?.(path, QPN);
    return performance.now() - fromMs;
  }

  it('waits for all of them as long as for one, and they lose their channels', async () => {
    const tookMs = await withdrawFromAll();
    assert.ok(tookMs >= BUDGET_MS / 2, `it did not wait: ${tookMs} ms`);
    assert.ok(tookMs < patience(2 * BUDGET_MS), `${tookMs} ms`);
    victim.receive();
    await delay(0);
    for (const { hostile } of peers) {
      assert.equal(channelsOf(victim).isAttached(hostile.channel), false);
    }
    // They come again at once: that time is spent.
    const againMs = await withdrawFromAll();
    assert.ok(againMs < patience(BUDGET_MS / 2), `${againMs} ms`);
    victim.receive();
    await delay(REST_MS + 100);
    assert.ok(
      (await withdrawFromAll()) >= BUDGET_MS / 2,
      'a peer that is slow is waited for again',
    );
  });
});
