import assert from 'node:assert/strict';
import {
  Fabric,
  type FabricOptions,
  type LinkOptions,
  type MemoryPort,
  SeededRandom,
  VirtualClock,
  VirtualTimer,
} from '../../../providers/mock/index.js';
import {
  describePackets,
  header,
  psnOf,
  takeReceived,
} from '../../../plugins/testing/port/harness.js';

const A = '10.0.0.1';
const B = '10.0.0.2';

interface Pair {
  readonly fabric: Fabric;
  readonly a: MemoryPort;
  readonly b: MemoryPort;
  readonly path: number;
}

function openPair(link: Partial<LinkOptions> = {}, options: FabricOptions = {}): Pair {
  const fabric = new Fabric({ link, ...options });
  const a = fabric.openPort({ addresses: [A] });
  const b = fabric.openPort({ addresses: [B] });
  const gid = b.gids[0];
  assert.ok(gid);
  return { fabric, a, b, path: a.addPath(gid, 0) };
}

function send({ a, path }: Pair, first: number, count: number): void {
  const packets = Array.from({ length: count }, (_, i) => ({ path, header: header(first + i) }));
  describePackets(a, packets);
  assert.equal(a.send(0, count), count);
}

/** PSNs received when nothing is under way any more. */
async function received({ fabric, b }: Pair): Promise<number[]> {
  await fabric.run({ untilIdle: true });
  const psns: number[] = [];
  for (let more = takeReceived(b); more.length > 0; more = takeReceived(b)) {
    psns.push(...more.map(psnOf));
  }
  return psns;
}

const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, i) => from + i);

describe('virtual clock', () => {
  it('jumps from one thing to the next, in order of time and then of asking', () => {
    const clock = new VirtualClock(5);
    const happened: string[] = [];
    clock.at(20, () => happened.push(`late ${clock.now()}`));
    clock.at(10, () => {
      happened.push(`early ${clock.now()}`);
      clock.soon(() => happened.push(`soon ${clock.now()}`));
    });
    clock.at(10, () => happened.push('second'));
    const gone = clock.at(15, () => happened.push('never'));
    clock.at(1, () => happened.push(`past ${clock.now()}`));
    clock.cancel(gone);
    while (clock.step());
    assert.deepEqual(happened, ['past 5', 'early 10', 'second', 'soon 10', 'late 20']);
    assert.equal(clock.pending, 0);
    assert.equal(clock.nextUs, Infinity);
  });

  it('keeps order among thousands of events', () => {
    const clock = new VirtualClock();
    const random = new SeededRandom(3);
    const times: number[] = [];
    for (let i = 0; i < 5000; i++) clock.at(random.below(1000), () => times.push(clock.now()));
    while (clock.step());
    assert.equal(times.length, 5000);
    assert.deepEqual(
      times,
      [...times].sort((x, y) => x - y),
    );
  });

  it('has timers that are armed anew', () => {
    const clock = new VirtualClock();
    const fired: number[] = [];
    const timer = new VirtualTimer(clock, () => fired.push(clock.now()));
    timer.arm(100);
    timer.arm(50);
    while (clock.step());
    timer.arm(70);
    timer.arm(Infinity);
    assert.equal(clock.pending, 0);
    assert.deepEqual(fired, [50]);
  });

  it('refuses a step inside of a step, and times that never come', () => {
    const clock = new VirtualClock();
    clock.soon(() => clock.step());
    clock.soon(() => undefined);
    assert.throws(() => clock.step(), /stepped already/);
    assert.throws(() => clock.at(Infinity, () => undefined), RangeError);
    assert.throws(() => clock.at(NaN, () => undefined), RangeError);
  });
});

describe('random delays', () => {
  it('have as many bits as every engine agrees on', () => {
    const random = new SeededRandom(27);
    for (let i = 0; i < 1000; i++) {
      const delay = random.exponential(1);
      assert.equal(delay, Math.fround(delay));
    }
  });
});

describe('fabric', () => {
  it('shows each packet that it loses, and why', () => {
    const reasons: string[] = [];
    const pair = openPair({ lossPercent: 100 });
    pair.fabric.lossTap = ({ length }, reason, nowUs): void => {
      assert.ok(length > 0 && nowUs === 0);
      reasons.push(reason);
    };
    send(pair, 0, 2);
    pair.fabric.setLink({}, { lossPercent: 0 });
    pair.fabric.partition([A], [B]);
    send(pair, 2, 1);
    assert.deepEqual(reasons, ['lost', 'lost', 'partitioned']);
  });

  it('takes the time that bandwidth and latency say', async () => {
    const pair = openPair({ bandwidth: 1e9, latencyMinUs: 100, latencyMeanUs: 100 });
    send(pair, 0, 1);
    assert.equal(pair.fabric.clock.now(), 0);
    assert.deepEqual(await received(pair), [0]);
    // 12 bytes of header, 4 of ICRC and 66 around them at 8 ns a byte.
    assert.ok(Math.abs(pair.fabric.clock.now() - (100 + 0.656)) < 1e-6);
  });

  it('drains microtasks between steps', async () => {
    const { fabric } = openPair();
    const order: string[] = [];
    fabric.clock.at(1, () => {
      void Promise.resolve()
        .then(() => Promise.resolve())
        .then(() => order.push('reaction'));
    });
    fabric.clock.at(2, () => order.push('next step'));
    await fabric.run({ untilIdle: true });
    assert.deepEqual(order, ['reaction', 'next step']);
  });

  it('runs for a time, and until something holds', async () => {
    const { fabric } = openPair();
    let done = false;
    fabric.clock.at(500, () => (done = true));
    await fabric.run({ forUs: 100 });
    assert.equal(fabric.clock.now(), 100);
    await assert.rejects(fabric.run({ until: () => done, withinUs: 100 }), /still false/);
    await fabric.run({ until: () => done });
    assert.equal(fabric.clock.now(), 500);
    await assert.rejects(fabric.run({ until: () => !done }), /nothing happens/);
  });

  it('does the same with the same seed', async () => {
    const link = { lossPercent: 20, duplicatePercent: 20, reorderPercent: 30, corruptPercent: 10 };
    const one = async (seed: number): Promise<string> => {
      const pair = openPair(link, { seed });
      send(pair, 0, 200);
      return JSON.stringify([await received(pair), pair.fabric.clock.now(), pair.b.counters]);
    };
    assert.equal(await one(11), await one(11));
    assert.notEqual(await one(11), await one(12));
  });

  it('loses, doubles and reorders about as often as it was told', async () => {
    const lossy = openPair({ lossPercent: 30 });
    for (let i = 0; i < 10; i++) send(lossy, i * 100, 100);
    const { length } = await received(lossy);
    assert.ok(length > 620 && length < 780, `${length} of 1000`);
    assert.equal(lossy.fabric.counters.lost, 1000 - length);
    const doubling = openPair({ duplicatePercent: 30 });
    send(doubling, 0, 100);
    const all = await received(doubling);
    assert.equal(all.length, 100 + doubling.fabric.counters.duplicated);
    assert.deepEqual(
      [...new Set(all)].sort((x, y) => x - y),
      range(0, 100),
    );
    const mixing = openPair({ reorderPercent: 30 });
    send(mixing, 0, 100);
    const mixed = await received(mixing);
    assert.notDeepEqual(mixed, range(0, 100));
    assert.deepEqual(
      mixed.sort((x, y) => x - y),
      range(0, 100),
    );
  });

  it('corrupts packets so that the ICRC finds it, the one masked byte excepted', async () => {
    const pair = openPair({ corruptPercent: 100 });
    for (let i = 0; i < 5; i++) send(pair, i * 200, 200);
    const passed = (await received(pair)).length;
    assert.equal(pair.b.counters.badIcrc, 1000 - passed);
    // A flip passes in byte 4 of the BTH alone, 1 of 16 bytes, or when two undo each other.
    assert.ok(passed < 80, `${passed} passed`);
  });

  it('partitions one way or both, and heals', async () => {
    const pair = openPair();
    pair.fabric.partition([A], [B], 'out');
    send(pair, 0, 5);
    assert.deepEqual(await received(pair), []);
    pair.fabric.heal();
    send(pair, 5, 5);
    assert.deepEqual(await received(pair), range(5, 10));
    pair.fabric.partition([B], [A], 'out');
    send(pair, 10, 5);
    assert.deepEqual(await received(pair), range(10, 15));
    assert.equal(pair.fabric.counters.partitioned, 5);
  });

  it('clogs: packets wait and then come in order', async () => {
    const pair = openPair();
    pair.fabric.clog({ to: B });
    send(pair, 0, 20);
    assert.deepEqual(await received(pair), []);
    pair.fabric.unclog();
    assert.deepEqual(await received(pair), range(0, 20));
  });

  it('makes a port wait when its link has enough to send', async () => {
    const pair = openPair({ bandwidth: 1e6, maxBacklogUs: 2000 });
    let writable = 0;
    pair.a.watch({
      onReadable: () => undefined,
      onWritable: () => writable++,
      onReport: () => undefined,
    });
    const packets = range(0, 10).map((psn) => ({ path: pair.path, header: header(psn) }));
    describePackets(pair.a, packets);
    const taken = pair.a.send(0, 10);
    assert.ok(taken > 0 && taken < 10, `${taken} taken`);
    await pair.fabric.run({ until: () => writable > 0 });
    assert.ok(pair.a.send(taken, 10) > taken);
  });

  it('refuses options out of their limits and addresses in use', () => {
    const { fabric } = openPair();
    assert.throws(() => fabric.setLink({}, { lossPercent: 101 }), /lossPercent is 101;/);
    assert.throws(() => fabric.setLink({}, { bandwidth: 0 }), /bandwidth is 0;/);
    assert.throws(() => fabric.setLink({}, { latencyMeanUs: 1, latencyMinUs: 2 }), RangeError);
    assert.throws(() => fabric.openPort({ addresses: [A] }), { code: 'EADDRINUSE' });
    assert.throws(() => fabric.openPort({ addresses: ['nowhere'] }), { code: 'EINVAL' });
    assert.throws(() => new Fabric({ mtuBytes: 1500 }), /^RangeError: mtuBytes is 1500;/);
    assert.throws(() => new Fabric({ seed: -1 }), RangeError);
  });
});

describe('fault script', () => {
  it('drops the n-th packet that matches, and counts', async () => {
    const pair = openPair();
    const fault = pair.fabric.faults.add({
      match: { from: A, where: ({ psn }) => psn % 2 === 1, nth: 2, count: 2 },
      action: { type: 'drop' },
    });
    send(pair, 0, 10);
    assert.deepEqual(await received(pair), [0, 1, 2, 4, 6, 7, 8, 9]);
    assert.deepEqual([fault.matched, fault.hits], [5, 2]);
    assert.equal(pair.fabric.counters.faulted, 2);
    fault.remove();
    send(pair, 10, 10);
    assert.equal((await received(pair)).length, 10);
    assert.equal(fault.matched, 5);
  });

  it('delays, duplicates and corrupts', async () => {
    const pair = openPair();
    const { faults } = pair.fabric;
    faults.add({ match: { psn: 1 }, action: { type: 'delay', byUs: 1000 } });
    faults.add({ match: { psn: 2 }, action: { type: 'duplicate', afterUs: [500, 2000] } });
    faults.add({ match: { psn: 3 }, action: { type: 'corrupt', byteOffset: 9 } });
    faults.add({ match: { opcode: 'RC_SEND_ONLY', psn: 4 }, action: { type: 'drop' } });
    faults.add({ match: { opcode: 'RC_ACKNOWLEDGE', count: Infinity }, action: { type: 'drop' } });
    send(pair, 0, 6);
    assert.deepEqual(await received(pair), [0, 2, 5, 2, 1, 2]);
    assert.equal(pair.b.counters.badIcrc, 1);
  });

  it('refuses to count from zero', () => {
    const { fabric } = openPair();
    const rule = { match: { nth: 0 }, action: { type: 'drop' } } as const;
    assert.throws(() => fabric.faults.add(rule), RangeError);
  });
});
