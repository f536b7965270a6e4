/** What every PacketPort must do, whatever carries its packets. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Gid, PacketPort, PacketPortHandlers } from '../../core/spi/index.js';
import { gidEquals, gidFromIp, ipFromGid, isIpv4Gid } from '../../core/spi/index.js';
import type { PacketSpec, ReceivedPacket } from './harness.js';
import {
  describePackets,
  header,
  pattern,
  place,
  psnOf,
  receiveSome,
  sendAll,
  takeReceived,
  until,
} from './harness.js';

export type Family = 'ipv4' | 'ipv6';

/** Two ports that can reach each other; they may be one and the same. */
export interface PortPair {
  readonly a: PacketPort;
  readonly b: PacketPort;
}

export interface PortCapabilities {
  readonly families: readonly Family[];
  /** An address of the family where nobody listens, if the port hears of that. */
  readonly silentAddress?: string;
}

export interface PortSuite {
  readonly capabilities: PortCapabilities;
  createPair(family: Family): Promise<PortPair>;
  teardown?(pair: PortPair): Promise<void>;
}

const nothing: PacketPortHandlers = { onReadable() {}, onWritable() {}, onUnreachable() {} };

interface Bench extends PortPair {
  readonly path: number;
  readonly memory: Uint8Array;
  readonly region: number;
}

export function describePacketPort(name: string, suite: PortSuite): void {
  for (const family of suite.capabilities.families) {
    describe(`${name}, ${family}`, () => {
      let bench: Bench;

      beforeEach(async () => {
        const pair = await suite.createPair(family);
        const memory = pattern(1 << 19);
        const region = pair.a.addRegion(memory.buffer, 0, memory.length);
        bench = { ...pair, memory, region, path: pair.a.addPath(gidOf(pair.b), 0) };
        pair.a.watch(nothing);
        pair.b.watch(nothing);
      });

      afterEach(async () => {
        await bench.a.close();
        await bench.b.close();
        await suite.teardown?.(bench);
      });

      describeDelivery(() => bench);
      describeMemory(() => bench);
      describePaths(() => bench);
      describeHandlers(() => bench, suite.capabilities);
      describeClosing(() => bench);
    });
  }
}

function gidOf(port: PacketPort, index = 0): Gid {
  const gid = port.gids[index];
  assert.ok(gid);
  return gid;
}

/** A packet of so many payload bytes from the region, padded as IBTA 9.2.6 says. */
function packet(bench: Bench, psn: number, bytes: number, headerBytes = 12): PacketSpec {
  const offset = (psn * 4099) % (bench.memory.length - 4096);
  const segments = bytes === 0 ? [] : [{ region: bench.region, offset, length: bytes }];
  return { path: bench.path, header: header(psn, -bytes & 3, headerBytes), segments };
}

function wireBytes(bench: Bench, spec: PacketSpec): Uint8Array {
  const parts = [
    spec.header,
    ...(spec.segments ?? []).map((s) => bench.memory.subarray(s.offset, s.offset + s.length)),
    new Uint8Array(((spec.header[1] ?? 0) >> 4) & 3),
  ];
  return new Uint8Array(Buffer.concat(parts));
}

async function assertDelivered(bench: Bench, specs: readonly PacketSpec[]): Promise<void> {
  await sendAll(bench.a, specs);
  const received = await receiveSome(bench.b, specs.length);
  assert.equal(received.length, specs.length);
  specs.forEach((spec, i) => {
    assert.deepEqual(received[i]?.bytes, wireBytes(bench, spec), `packet ${String(i)}`);
  });
}

function describeDelivery(use: () => Bench): void {
  it('names its addresses and a RoCE MTU', () => {
    const { a, b } = use();
    for (const port of [a, b]) {
      assert.ok(port.gids.length > 0);
      assert.ok([256, 512, 1024, 2048, 4096].includes(port.mtuBytes));
    }
  });

  it('delivers every size and padding bit by bit', async () => {
    const bench = use();
    const sizes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1023, 1024];
    sizes.push(1500, 2047, 2048, 2049, 4092, 4093, 4094, 4095, 4096);
    await assertDelivered(
      bench,
      sizes.map((bytes, i) => packet(bench, i, bytes)),
    );
  });

  it('delivers every header length', async () => {
    const bench = use();
    const lengths = [12, 16, 20, 24, 28, 32, 36, 40, 44, 48];
    await assertDelivered(
      bench,
      lengths.flatMap((bytes, i) => [packet(bench, i, 0, bytes), packet(bench, i, 4096, bytes)]),
    );
  });

  it('gathers a payload from many pieces', async () => {
    const bench = use();
    const { path, region } = bench;
    const specs = [1, 2, 7, 8, 9, 30, 300].map((pieces, psn) => {
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

  it('delivers long runs of equal packets, whatever they end with', async () => {
    const bench = use();
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

  it('delivers the same when packets are offered one by one', async () => {
    const bench = use();
    for (let psn = 0; psn < 10; psn++) await assertDelivered(bench, [packet(bench, psn, 512)]);
  });

  it('delivers runs that are broken by longer and shorter packets', async () => {
    const bench = use();
    const sizes = [4096, 4096, 20, 4096, 4096, 4096, 8, 8, 8, 8, 9, 4096, 0, 0, 4096, 4096];
    await assertDelivered(
      bench,
      sizes.map((bytes, i) => packet(bench, i, bytes, i % 5 === 0 ? 28 : 12)),
    );
  });

  it('sends from the middle of the array', async () => {
    const bench = use();
    const specs = [0, 1, 2, 3].map((psn) => packet(bench, psn, 128));
    describePackets(bench.a, specs);
    assert.equal(bench.a.send(1, 3), 3);
    const received = await receiveSome(bench.b, 2);
    assert.deepEqual(received.map(psnOf), [1, 2]);
    assert.equal((await receiveSome(bench.b, 1, 20)).length, 0);
  });

  it('says where a packet came from and to', async () => {
    const bench = use();
    await sendAll(bench.a, [packet(bench, 7, 8)]);
    const [received] = await receiveSome(bench.b, 1);
    assert.ok(received);
    assert.equal(ipFromGid(received.sourceGid), ipFromGid(gidOf(bench.a)));
    assert.equal(received.flags & 1, isIpv4Gid(received.sourceGid) ? 0 : 1);
    assert.equal(received.localGidIndex, 0);
  });

  it('keeps the order of each path, and tells its own addresses apart', async function () {
    const bench = use();
    const { a, b } = bench;
    if (b.gids.length < 2) return this.skip();
    const other = a.addPath(gidOf(b, 1), 0);
    const specs = Array.from({ length: 100 }, (_, psn) => ({
      ...packet(bench, psn, 256),
      path: psn % 3 === 0 ? other : bench.path,
    }));
    await sendAll(a, specs);
    const received = await receiveSome(b, specs.length);
    const of = (index: number): number[] =>
      received.filter((r) => r.localGidIndex === index).map(psnOf);
    const psns = specs.map((_, psn) => psn);
    assert.deepEqual(
      of(0),
      psns.filter((psn) => psn % 3 !== 0),
    );
    assert.deepEqual(
      of(1),
      psns.filter((psn) => psn % 3 === 0),
    );
  });

  it('loses nothing silently when more is sent than the system takes at once', async () => {
    const bench = use();
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
}

function describeMemory(use: () => Bench): void {
  it('places payload where it was told, in order', async () => {
    const bench = use();
    const { b, memory } = bench;
    await sendAll(bench.a, [packet(bench, 0, 1000), packet(bench, 1, 1000)]);
    await until(() => b.receive() === 2, 'both packets');
    const target = new Uint8Array(4096).fill(0xee);
    const region = b.addRegion(target.buffer, 1024, 2048);
    const at = (i: number): number => (b.rxPackets[i * 16] ?? 0) + 12;
    place(b, [
      { source: at(0), length: 1000, region, offset: 0 },
      { source: at(1), length: 1000, region, offset: 1048 },
      { source: at(1), length: 10, region, offset: 5 }, // over the first
      { source: at(0), length: 0, region, offset: 2048 },
    ]);
    const expected = new Uint8Array(4096).fill(0xee);
    expected.set(memory.subarray(0, 1000), 1024);
    expected.set(memory.subarray(4099, 5099), 2072);
    expected.set(memory.subarray(4099, 4109), 1029);
    assert.deepEqual(target, expected);
    b.removeRegion(region);
  });

  it('refuses placements outside a region, and writes nothing there', () => {
    const { b } = use();
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
      { source: 0xffffffff, length: 2, region, offset: 0 },
      { source: 0, length: 1, region: region + 1000, offset: 0 },
    ];
    for (const entry of bad) assert.throws(() => place(b, [entry]), RangeError);
    assert.throws(() => b.place(1 << 20), RangeError);
    b.removeRegion(region);
    const gone = { source: 0, length: 1, region, offset: 0 };
    assert.throws(() => place(b, [gone]), RangeError);
    assert.deepEqual(target, new Uint8Array(300).fill(0xee));
  });

  it('refuses to send what is not wholly in a region', () => {
    const { a, path, region, memory } = use();
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
      assert.throws(() => a.send(0, 1), RangeError);
    }
  });

  it('refuses packets that break the contract', () => {
    const { a, path } = use();
    const bad: readonly PacketSpec[] = [
      { path: path + 1000, header: header(0) },
      { path, header: header(0).subarray(0, 8) },
      { path, header: new Uint8Array(14) },
    ];
    for (const spec of bad) {
      describePackets(a, [spec]);
      assert.throws(() => a.send(0, 1), RangeError);
    }
    describePackets(a, [{ path, header: header(0) }]);
    a.txPackets.set([0xffffffff, 0xffffffff], 2);
    assert.throws(() => a.send(0, 1), RangeError);
    assert.throws(() => a.send(0, 1 << 20), RangeError);
  });

  it('survives memory that is transferred away', () => {
    const { a, b, path } = use();
    const buffer = new ArrayBuffer(4096);
    const region = a.addRegion(buffer, 0, 4096);
    const atB = a === b ? region : b.addRegion(buffer, 0, 4096);
    structuredClone(buffer, { transfer: [buffer] });
    const segments = [{ region, offset: 0, length: 4096 }];
    describePackets(a, [{ path, header: header(0), segments }]);
    assert.throws(() => a.send(0, 1), RangeError);
    assert.throws(() => place(b, [{ source: 0, length: 1, region: atB, offset: 0 }]), RangeError);
  });

  it('refuses memory that may move, and takes shared memory', async () => {
    const bench = use();
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

  it('uses region numbers again, for the new memory only', async () => {
    const bench = use();
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
}

function describePaths(use: () => Bench): void {
  it('counts paths', async () => {
    const bench = use();
    const { a, b, path } = bench;
    assert.equal(a.addPath(gidOf(b), 0), path);
    a.removePath(path);
    await assertDelivered(bench, [packet(bench, 1, 16)]);
    a.removePath(path);
    assert.throws(() => a.removePath(path), RangeError);
    describePackets(a, [packet(bench, 1, 16)]);
    assert.throws(() => a.send(0, 1), RangeError);
  });

  it('refuses a path to the other family, and from an address that it has not', () => {
    const { a } = use();
    const other = gidFromIp(isIpv4Gid(gidOf(a)) ? '::1' : '127.0.0.1');
    assert.throws(() => a.addPath(other, 0), RangeError);
    assert.throws(() => a.addPath(gidOf(a), a.gids.length), RangeError);
  });
}

function describeHandlers(use: () => Bench, capabilities: PortCapabilities): void {
  it('calls onReadable for what arrives, but never inside a call', async () => {
    const bench = use();
    let inCall = false;
    let readable = 0;
    const received: number[] = [];
    bench.b.watch({
      ...nothing,
      onReadable() {
        assert.equal(inCall, false);
        readable++;
        received.push(...takeReceived(bench.b).map(psnOf));
      },
    });
    bench.b.setKeepAlive(true);
    for (let psn = 0; psn < 20; psn++) {
      inCall = true;
      describePackets(bench.a, [packet(bench, psn, 100)]);
      assert.equal(bench.a.send(0, 1), 1);
      bench.b.setKeepAlive(true);
      inCall = false;
      await delay(0);
    }
    await until(() => received.length === 20, 'all packets');
    assert.deepEqual(
      received,
      Array.from({ length: 20 }, (_, psn) => psn),
    );
    assert.ok(readable > 0);
  });

  const { silentAddress } = capabilities;
  if (silentAddress === undefined) return;
  it('hears that nobody listens at a destination', async function () {
    const bench = use();
    const silent = gidFromIp(silentAddress);
    if (isIpv4Gid(silent) !== isIpv4Gid(gidOf(bench.a))) return this.skip();
    const heard: Gid[] = [];
    let inCall = false;
    bench.a.watch({
      ...nothing,
      onUnreachable(gid) {
        assert.equal(inCall, false);
        heard.push(gid);
      },
    });
    const path = bench.a.addPath(silent, 0);
    for (let psn = 0; psn < 50; psn++) {
      describePackets(bench.a, [{ ...packet(bench, psn, 10), path }]);
      inCall = true;
      assert.equal(bench.a.send(0, 1), 1);
      bench.a.receive();
      inCall = false;
    }
    await until(() => heard.length > 0, 'onUnreachable');
    assert.ok(heard.every((gid) => gidEquals(gid, silent)));
    assert.ok(heard.length < 10, 'it is told again and again');
    await assertDelivered(bench, [packet(bench, 1, 16)]); // the port works on
  });
}

function describeClosing(use: () => Bench): void {
  it('closes in the middle of things, once', async () => {
    const bench = use();
    let calls = 0;
    let closing: Promise<void> | undefined;
    bench.b.watch({
      ...nothing,
      onReadable() {
        calls++;
        closing ??= bench.b.close();
      },
    });
    const specs = Array.from({ length: 50 }, (_, psn) => packet(bench, psn, 1024));
    await sendAll(bench.a, specs);
    await until(() => closing !== undefined, 'onReadable');
    await Promise.all([closing, bench.b.close()]);
    assert.equal(calls, 1);
    assert.equal(bench.b.receive(), 0);
    await delay(5);
    assert.equal(calls, 1);
  });

  it('can be used, without effect, when closed', async () => {
    const bench = use();
    await bench.a.close();
    describePackets(bench.a, [packet(bench, 0, 64)]);
    assert.doesNotThrow(() => {
      bench.a.send(0, 1);
      bench.a.receive();
      bench.a.setKeepAlive(true);
      bench.a.removeRegion(bench.region);
      bench.a.removePath(bench.path);
    });
    await bench.a.close();
  });
}
