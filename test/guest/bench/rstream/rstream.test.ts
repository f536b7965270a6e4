// What bench:rstream is made of, without a guest: its loop, what it reads, and its table.
import assert from 'node:assert/strict';
import { once } from 'node:events';

import { rsocket } from '../../../../samples/ulp/rsocket/index.js';
import type { RdmaSocket } from '../../../../samples/ulp/socket/index.js';
import { worldsOf } from '../../../sockets/rdma-worlds.js';
import { closed, dial, inWorld, listening } from '../../../sockets/world.js';
import { tableOf } from './main.js';
import { microsecondsOf } from './sides.js';
import { transfer } from './transfers.js';
import { transfersOf, workOf } from './work.js';

describe('bench:rstream', () => {
  it(
    'moves all transfers of both sides, and ends both',
    inWorld(worldsOf(rsocket, 66).mock, async (world) => {
      const work = { bytes: 70_000, transfers: 3, rounds: 2 };
      const { server, port } = await listening(world);
      const client = dial(world, port);
      const [[accepted]] = await Promise.all([
        once(server, 'connection') as Promise<[RdmaSocket]>,
        once(client, 'connect'),
      ]);
      const [here, there] = await Promise.all([
        transfer(client, work, true),
        transfer(accepted, work, false),
      ]);
      assert.ok(here > 0 && there > 0);
      const bytes = 70_000 * 3 * 2 + 16;
      assert.deepEqual([client.bytesWritten, client.bytesRead], [bytes, bytes]);
      assert.deepEqual([accepted.bytesWritten, accepted.bytesRead], [bytes, bytes]);
      await closed(server);
    }),
  );

  it('has single transfers of small sizes, and as many bytes of any larger one', () => {
    assert.deepEqual(workOf(64), { bytes: 64, transfers: 1, rounds: 200 });
    assert.equal(transfersOf(workOf(64)), 400);
    for (const bytes of [65_536, 1 << 20]) {
      assert.equal(bytes * transfersOf(workOf(bytes)), 8 * 2 ** 20);
    }
  });

  it('reads what rstream prints', () => {
    const heading = 'name      bytes   xfers   iters   total       time     Gb/sec    usec/xfer';
    const line = 'custom    64k     128     2       32m         0.65s      0.41    1284.60';
    assert.equal(microsecondsOf(`${heading}\n${line}\n`), 1284.6);
    assert.throws(() => microsecondsOf(`${heading}\n`), /no result/);
    assert.throws(() => microsecondsOf(''), /no result/);
  });

  it('puts ours beside rstream of the same round', () => {
    const results = {
      rstream: [100, 200, 300],
      verbs: [200, 200, 200],
      'rstream to verbs': [150],
      'rstream to softroce': [120],
    };
    const lines = tableOf([
      [64, results],
      [100_000, results],
    ]).split('\n');
    assert.match(
      lines[2] ?? '',
      /^\| 64 B, us a half round trip \| 200 \| 200 \|.*\| 1\.00 \(0\.67 to 2\.00\) \|$/,
    );
    assert.match(
      lines[3] ?? '',
      /^\| 100000 B, MB\/s \| 500 \| 500 \|.*\| 1\.00 \(0\.50 to 1\.50\) \|$/,
    );
  });
});
