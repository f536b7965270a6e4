import assert from 'node:assert/strict';
import { ipFromGid, isIpv4Gid } from 'dapl/spi';
import { assertDelivered, gidOf, packet, portGroup } from './bench-pair.js';
import {
  describePackets,
  header,
  psnOf,
  type ReceivedPacket,
  receiveSome,
  sendAll,
  until,
} from './harness.js';

export const delivering = portGroup('Delivering', (claim) => {
  claim('names its addresses and a RoCE MTU', ({ a, b }) => {
    for (const port of [a, b]) {
      assert.ok(port.gids.length > 0);
      assert.ok([256, 512, 1024, 2048, 4096].includes(port.mtuBytes));
    }
  });

  claim('delivers every size and padding bit by bit', async (bench) => {
    const sizes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1023, 1024];
    sizes.push(1500, 2047, 2048, 2049, 4092, 4093, 4094, 4095, 4096);
    await assertDelivered(
      bench,
      sizes.map((bytes, i) => packet(bench, i, bytes)),
    );
  });

  claim('delivers every header length', async (bench) => {
    const lengths = [12, 16, 20, 24, 28, 32, 36, 40, 44, 48];
    await assertDelivered(
      bench,
      lengths.flatMap((bytes, i) => [packet(bench, i, 0, bytes), packet(bench, i, 4096, bytes)]),
    );
  });

  claim('gathers a payload from many pieces', async (bench) => {
    const { path, region } = bench;
    const specs = [1, 2, 7, 8, 9, 30, 255].map((pieces, psn) => {
      const segments = Array.from({ length: pieces }, (_, i) => ({
        region,
        offset: 5000 + 97 * i,
        length: (i * 7) % 13, // some are empty
      }));
      const bytes = segments.reduce((sum, s) => sum + s.length, 0);
      return { path, header: header(psn, -bytes & 3), segments };
    });
    await assertDelivered(bench, specs);
  });

  claim('delivers long runs of equal packets, whatever they end with', async (bench) => {
    for (const [count, bytes, last] of [
      [40, 4096, 100],
      [70, 1024, 1024],
      [200, 64, 61],
      [130, 0, 0],
    ] as const) {
      const specs = Array.from({ length: count }, (_, i) =>
        packet(bench, i, i === count - 1 ? last : bytes),
      );
      await assertDelivered(bench, specs);
    }
  });

  claim('delivers the same when packets are offered one by one', async (bench) => {
    for (let psn = 0; psn < 10; psn++) await assertDelivered(bench, [packet(bench, psn, 512)]);
  });

  claim('delivers runs that are broken by longer and shorter packets', async (bench) => {
    const sizes = [4096, 4096, 20, 4096, 4096, 4096, 8, 8, 8, 8, 9, 4096, 0, 0, 4096, 4096];
    await assertDelivered(
      bench,
      sizes.map((bytes, i) => packet(bench, i, bytes, i % 5 === 0 ? 28 : 12)),
    );
  });

  claim('sends from the middle of the array', async (bench) => {
    const specs = [0, 1, 2, 3].map((psn) => packet(bench, psn, 128));
    describePackets(bench.a, specs);
    assert.equal(bench.a.send(1, 3), 3);
    const received = await receiveSome(bench.b, 2);
    assert.deepEqual(received.map(psnOf), [1, 2]);
    assert.equal((await receiveSome(bench.b, 1, 20)).length, 0);
  });

  claim('says where a packet came from and to', async (bench) => {
    await sendAll(bench.a, [packet(bench, 7, 8)]);
    const [received] = await receiveSome(bench.b, 1);
    assert.ok(received);
    assert.equal(ipFromGid(received.sourceGid), ipFromGid(gidOf(bench.a)));
    assert.equal(received.flags & 1, isIpv4Gid(received.sourceGid) ? 0 : 1);
    assert.equal(received.localGidIndex, 0);
  });

  claim('keeps the order of each path', async (bench) => {
    const { a, b } = bench;
    const paths = b.gids.map((_, i) => a.addPath(gidOf(b, i), 0, bench.pathBytes));
    const to = (psn: number): number => (psn % 3) % paths.length;
    const specs = Array.from({ length: 100 }, (_, psn) => ({
      ...packet(bench, psn, 256),
      path: paths[to(psn)] ?? -1,
    }));
    await sendAll(a, specs);
    const received = await receiveSome(b, specs.length);
    const psns = specs.map((_, psn) => psn);
    for (const index of paths.keys()) {
      assert.deepEqual(
        received.filter((r) => r.localGidIndex === index).map(psnOf),
        psns.filter((psn) => to(psn) === index),
      );
    }
  });

  claim(
    'tells two addresses of its own apart, in what it receives and in what it sends',
    async ({ a, b, pathBytes }) => {
      assert.ok(b.gids.length >= 2, 'the second port has one address');
      for (const index of [1, 0]) {
        const [to, back] = [
          a.addPath(gidOf(b, index), 0, pathBytes),
          b.addPath(gidOf(a), index, pathBytes),
        ];
        await sendAll(a, [{ path: to, header: header(index) }]);
        const [received] = await receiveSome(b, 1);
        assert.equal(received?.localGidIndex, index, 'LOCAL_GID_INDEX of what came');
        await sendAll(b, [{ path: back, header: header(index) }]);
        const [answer] = await receiveSome(a, 1);
        assert.ok(answer);
        assert.equal(ipFromGid(answer.sourceGid), ipFromGid(gidOf(b, index)), 'where it came from');
      }
    },
    ['addresses'],
  );

  claim('loses nothing silently when more is sent than the system takes at once', async (bench) => {
    const total = 4000;
    const received: ReceivedPacket[] = [];
    for (let first = 0; first < total; first += 200) {
      const specs = Array.from({ length: 200 }, (_, i) => packet(bench, first + i, 1024));
      await sendAll(bench.a, specs);
      received.push(...(await receiveSome(bench.b, 200)));
    }
    assert.deepEqual(
      received.map(psnOf),
      Array.from({ length: total }, (_, psn) => psn),
    );
    await until(() => bench.a.counters.sentPackets === total, 'all packets to be counted');
    assert.equal(bench.b.counters.receivedPackets, total);
    assert.equal(bench.b.counters.badIcrc, 0);
  });
});
