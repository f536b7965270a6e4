import assert from 'node:assert/strict';
import { RX } from 'dapl/spi';
import { assertDelivered, packet, portGroup } from './bench-pair.js';
import {
  describePackets,
  header,
  type PacketSpec,
  pattern,
  place,
  receiveSome,
  sendAll,
  until,
} from './harness.js';

export const placing = portGroup('Memory', (claim) => {
  claim('places payload where it was told, in order', async (bench) => {
    const { b, memory } = bench;
    const target = new Uint8Array(4096).fill(0xee);
    const region = b.addRegion(target.buffer, 1024, 2048);
    const receiveOne = async (psn: number): Promise<number> => {
      await sendAll(bench.a, [packet(bench, psn, 1000)]);
      await until(() => b.receive() === 1, 'the packet');
      return (b.rxPackets[RX.BODY] || b.rxPackets[RX.OFFSET] || 0) + 12;
    };
    const first = await receiveOne(0);
    place(b, [
      { source: first, length: 1000, region, offset: 0 },
      { source: first, length: 0, region, offset: 2048 },
    ]);
    const second = await receiveOne(1);
    place(b, [
      { source: second, length: 1000, region, offset: 1048 },
      { source: second + 500, length: 10, region, offset: 5 }, // over the first
      { source: second, length: 10, region, offset: 5 }, // and over that
    ]);
    const expected = new Uint8Array(4096).fill(0xee);
    expected.set(memory.subarray(0, 1000), 1024);
    expected.set(memory.subarray(4099, 5099), 2072);
    expected.set(memory.subarray(4099, 4109), 1029);
    assert.deepEqual(target, expected);
    b.removeRegion(region);
  });

  claim('refuses placements outside a region, and writes nothing there', ({ b }) => {
    const target = new Uint8Array(300).fill(0xee);
    const region = b.addRegion(target.buffer, 100, 100);
    const bad = [
      { source: 0, length: 101, region, offset: 0 },
      { source: 0, length: 1, region, offset: 100 },
      { source: 0, length: 50, region, offset: 51 },
      { source: 0, length: 1, region, offset: 2 ** 32 },
      { source: 0, length: 1, region, offset: 2 ** 53 - 1 },
      { source: 0, length: 0xffffffff, region, offset: 1 },
      { source: b.rxArena.length - 1, length: 2, region, offset: 0 },
      { source: b.rxArena.length, length: 1, region, offset: 0 },
      { source: 0xffffffff, length: 2, region, offset: 0 },
      { source: 0, length: 1, region: region + 1000, offset: 0 },
    ];
    for (const entry of bad) {
      assert.throws(() => place(b, [entry]), RangeError, `place ${JSON.stringify(entry)}`);
    }
    assert.throws(() => b.place(1 << 20), RangeError, 'place of more than the array has');
    b.removeRegion(region);
    const gone = { source: 0, length: 1, region, offset: 0 };
    assert.throws(() => place(b, [gone]), RangeError);
    assert.deepEqual(target, new Uint8Array(300).fill(0xee));
  });

  claim('refuses to send what is not wholly in a region, all of it', async (bench) => {
    const { a, path, region, memory } = bench;
    const end = memory.length;
    const bad = [
      { region, offset: end, length: 1 },
      { region, offset: end - 10, length: 11 },
      { region, offset: 2 ** 32, length: 1 },
      { region, offset: 1, length: 0xffffffff },
      { region: region + 1000, offset: 0, length: 1 },
    ];
    for (const segment of bad) {
      describePackets(a, [{ path, header: header(0), segments: [segment] }]);
      const what = `${segment.length} bytes at ${segment.offset} of region ${segment.region}`;
      assert.throws(() => a.send(0, 1), RangeError, `send of ${what}`);
    }
    await assertDelivered(bench, [packet(bench, 9, 16)]);
  });

  claim('refuses packets that break the contract', async (bench) => {
    const { a, path } = bench;
    const bad: Readonly<Record<string, PacketSpec>> = {
      'by a path that there is not': { path: path + 1000, header: header(0) },
      'with headers of 8 bytes, less than a BTH': { path, header: header(0).subarray(0, 8) },
      'with headers of 14 bytes, no multiple of 4': { path, header: new Uint8Array(14) },
    };
    for (const [what, spec] of Object.entries(bad)) {
      describePackets(a, [spec]);
      assert.throws(() => a.send(0, 1), RangeError, `send of a packet ${what}`);
    }
    describePackets(a, [{ path, header: header(0) }]);
    a.txPackets.set([0xffffffff, 0xffffffff], 2);
    assert.throws(
      () => a.send(0, 1),
      RangeError,
      'send of a packet with segments beyond the array',
    );
    assert.throws(() => a.send(0, 1 << 20), RangeError, 'send of more packets than the array has');
    await assertDelivered(bench, [packet(bench, 9, 16)]);
  });

  claim('survives memory that is transferred away', ({ a, b, path }) => {
    const buffer = new ArrayBuffer(4096);
    const region = a.addRegion(buffer, 0, 4096);
    const atB = a === b ? region : b.addRegion(buffer, 0, 4096);
    structuredClone(buffer, { transfer: [buffer] });
    const segments = [{ region, offset: 0, length: 4096 }];
    describePackets(a, [{ path, header: header(0), segments }]);
    assert.throws(() => a.send(0, 1), RangeError);
    assert.throws(() => place(b, [{ source: 0, length: 1, region: atB, offset: 0 }]), RangeError);
  });

  claim('refuses memory that may move, and takes shared memory', async (bench) => {
    const resizable = Reflect.construct(ArrayBuffer, [16, { maxByteLength: 64 }]) as ArrayBuffer;
    assert.throws(() => bench.a.addRegion(resizable, 0, 16), { code: 'EINVAL' });
    assert.throws(() => bench.a.addRegion(new ArrayBuffer(16), 8, 9), { code: 'EINVAL' });
    const shared = new SharedArrayBuffer(64);
    new Uint8Array(shared).set(pattern(64, 9));
    const region = bench.a.addRegion(shared, 0, 64);
    const segments = [{ region, offset: 0, length: 64 }];
    await sendAll(bench.a, [{ path: bench.path, header: header(1), segments }]);
    const [received] = await receiveSome(bench.b, 1);
    assert.deepEqual(received?.bytes.slice(12), pattern(64, 9));
    bench.a.removeRegion(region);
  });

  claim('uses region numbers again, for the new memory only', async (bench) => {
    const first = bench.a.addRegion(new ArrayBuffer(64), 0, 64);
    bench.a.removeRegion(first);
    assert.throws(() => bench.a.removeRegion(first), RangeError);
    const bytes = pattern(64, 3);
    const second = bench.a.addRegion(bytes.buffer, 0, 64);
    const segments = [{ region: second, offset: 0, length: 64 }];
    await sendAll(bench.a, [{ path: bench.path, header: header(1), segments }]);
    const [received] = await receiveSome(bench.b, 1);
    assert.deepEqual(received?.bytes.slice(12), bytes);
  });
});
