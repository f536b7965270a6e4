// The benchmark of sockets: its rows, and the work of its two ends over sockets of Node.

import assert from 'node:assert/strict';
import { cell } from '../../../bench/compare/cells.js';
import { NodeSockets } from '../../../bench/sockets/kinds.js';
import { ROWS } from '../../../bench/sockets/rows.js';
import { SocketsEnd } from '../../../bench/sockets/sockets-end.js';
import { loopback } from '../../support/loopback.js';

const HOST = loopback(63, 1);
/** Of a measurement; the test looks at what is counted, not at how fast. */
const SECONDS = 0.02;

describe('bench: sockets', () => {
  it('has each size with one connection and with 50, beside TCP and Unix sockets', () => {
    const seen = ROWS.map(({ ours }) => `${ours.workload} ${ours.bytes} ${ours.endpoints}`);
    for (const bytes of [64, 4096]) {
      assert.ok(seen.includes(`ping ${bytes} 1`) && seen.includes(`calls ${bytes} 50`));
    }
    for (const bytes of [65536, 1 << 20]) {
      assert.ok(seen.includes(`send ${bytes} 1`) && seen.includes(`send ${bytes} 50`));
    }
    assert.equal(new Set(ROWS.map(({ label }) => label)).size, ROWS.length);
    for (const { ours, rivals } of ROWS) {
      const peers = ours.contender === 'sdp-zero' ? ['sdp-copy'] : ['node-tcp', 'node-uds'];
      assert.deepEqual(
        rivals.map(({ cell: { contender, bytes, workload, endpoints } }) => [
          contender,
          ...[bytes, workload, endpoints],
        ]),
        peers.map((peer) => [peer, ...[ours.bytes, ours.workload, ours.endpoints]]),
      );
    }
  });

  for (const kind of ['tcp', 'unix'] as const) {
    for (const [workload, bytes, endpoints] of [
      ['ping', 64, 1],
      ['calls', 4096, 5],
      ['send', 65536, 3],
    ] as const) {
      it(`counts ${workload} over ${kind}, on ${endpoints} connections`, async () => {
        const there = new SocketsEnd(new NodeSockets(kind, HOST, HOST));
        const here = new SocketsEnd(new NodeSockets(kind, HOST, HOST));
        const work = cell(kind, workload, bytes, { polling: 'event', endpoints, depth: 1 });
        const count = await here.run(work, await there.listen(work), SECONDS);
        assert.ok(count.messages >= count.counted && count.counted > 0, String(count.messages));
        assert.ok(count.seconds > 0);
        assert.equal(count.p50 !== undefined, workload === 'ping');
        await Promise.all([here.close(), there.close()]);
      });
    }
  }
});
