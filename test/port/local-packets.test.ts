/** Packets longer than IBTA knows, between two of ours on loopback, and trains there. */
import assert from 'node:assert/strict';
import { LOCAL_MTU_BYTES } from '../../core/spi/index.js';
import { openDgramPort } from '../../providers/softroce/dgram/port.js';
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import type { SocketPort } from '../../providers/softroce/port/port-options.js';
import {
  type Bench,
  assertDelivered,
  gidOf,
  nothing,
} from '../../plugins/testing/port/bench-pair.js';
import { header, pattern, receiveSome, sendAll } from '../../plugins/testing/port/harness.js';
import { loopback, testPort } from '../support/loopback.js';

const UDP_PORT = testPort(35);
const READ_RESPONSE_MIDDLE = 0x0e;

async function withBench(ips: readonly [string, string], body: (bench: Bench) => Promise<void>) {
  const [a, b] = ips.map((ip) => openNativePort({ addresses: [ip], udpPort: UDP_PORT })) as [
    SocketPort,
    SocketPort,
  ];
  try {
    const memory = pattern(1 << 20);
    const region = a.addRegion(memory.buffer, 0, memory.length);
    a.watch(nothing);
    b.watch(nothing);
    await body({ a, b, memory, region, path: a.addPath(gidOf(b), 0) });
    assert.equal(b.counters.badIcrc + b.counters.malformed, 0);
  } finally {
    await a.close();
    await b.close();
  }
}

describe('native port, packets on one host', () => {
  it('says that it takes longer ones, unless a limit was asked for', async () => {
    const port = openNativePort({ addresses: [loopback(0, 46)], udpPort: UDP_PORT });
    const limited = openNativePort({
      addresses: [loopback(0, 47)],
      udpPort: UDP_PORT,
      mtuBytes: 4096,
    });
    const dgram = await openDgramPort({ addresses: [loopback(0, 48)], udpPort: UDP_PORT });
    assert.deepEqual([port.mtuBytes, port.localMtuBytes], [4096, LOCAL_MTU_BYTES]);
    assert.equal(limited.localMtuBytes, undefined);
    assert.equal(dgram.localMtuBytes, undefined);
    await Promise.all([port.close(), limited.close(), dgram.close()]);
  });

  for (const first of [0x04, READ_RESPONSE_MIDDLE]) {
    it(`delivers them from any place, in any piece: opcode ${String(first)}`, () =>
      withBench([loopback(0, 46), loopback(0, 47)], async (bench) => {
        const { path, region } = bench;
        const spec = (psn: number, headerBytes: number, ...lengths: number[]) => {
          const total = lengths.reduce((sum, length) => sum + length, 0);
          const begin = header(psn, -total & 3, headerBytes);
          begin[0] = first;
          let offset = 1 + 977 * psn;
          const segments = lengths.map((length) => {
            offset += length;
            return { region, offset: offset - length, length };
          });
          return { path, header: begin, segments };
        };
        await assertDelivered(bench, [
          spec(0, 12, LOCAL_MTU_BYTES),
          spec(1, 48, LOCAL_MTU_BYTES),
          spec(2, 28, LOCAL_MTU_BYTES - 1),
          spec(3, 12, 40_000, 17_000, 2),
          spec(4, 12, 32_768),
          spec(5, 12, 100),
          ...Array.from({ length: 40 }, (_, i) => spec(6 + i, 12, 4096)),
        ]);
      }));
  }

  it('copies payload in two segments at once: what happens to it later is not sent', () =>
    withBench([loopback(0, 46), loopback(0, 47)], async ({ a, b, path, region, memory }) => {
      const before = memory.slice(0, LOCAL_MTU_BYTES);
      const segments = [
        { region, offset: 0, length: 1 },
        { region, offset: 1, length: LOCAL_MTU_BYTES - 1 },
      ];
      await sendAll(a, [{ path, header: header(1), segments }]);
      memory.fill(0);
      const [received] = await receiveSome(b, 1);
      assert.deepEqual(received?.bytes.subarray(12), before);
    }));

  it('delivers more than a ring of pages holds, in turns', () =>
    withBench([loopback(0, 46), loopback(0, 47)], async (bench) => {
      const { path, region } = bench;
      for (let turn = 0; turn < 12; turn++) {
        const specs = Array.from({ length: 120 }, (_, i) => {
          const psn = 120 * turn + i;
          return {
            path,
            header: header(psn),
            segments: [{ region, offset: 64 * psn, length: 4096 }],
          };
        });
        await assertDelivered(bench, specs);
      }
    }));
});
