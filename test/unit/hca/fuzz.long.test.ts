import assert from 'node:assert/strict';
import {
  Access,
  type MemoryRegion,
  type MemoryWindow,
  nextRkey,
  QpState,
  QpType,
  type QueuePair,
  WrOpcode,
} from '../../../core/spi/index.js';
import { SeededRandom } from '../../../providers/mock/index.js';
import {
  HcaPair,
  connect,
  connectUc,
  drain,
  postReceive,
  postSend,
} from '../../support/hca-pair.js';

const GUARD = 0x10000;
const GRANTED = 0x10000;
const DATAGRAMS = 100_000;
const BATCH = 50;

/** Memory with a granted range in its middle; what lies around it must never change. */
class Guarded {
  readonly bytes = new Uint8Array(2 * GUARD + GRANTED).fill(0x77);
  readonly region: MemoryRegion;

  constructor(pair: HcaPair) {
    const middle = this.bytes.subarray(GUARD, GUARD + GRANTED);
    const access = Access.LOCAL_WRITE | Access.MW_BIND | Access.REMOTE_READ | Access.REMOTE_ATOMIC;
    this.region = pair.b.pd.registerMemory(middle, access, pair.b.base);
  }

  check(): void {
    assert.ok(this.bytes.subarray(0, GUARD).every((byte) => byte === 0x77));
    assert.ok(this.bytes.subarray(GUARD + GRANTED).every((byte) => byte === 0x77));
  }
}

/** Random bytes, or a packet seen before with bytes changed, cut off or added. */
function datagram(random: SeededRandom, seen: readonly Uint8Array[]): Uint8Array {
  if (random.below(10) === 0 || seen.length === 0) {
    return Uint8Array.from({ length: random.below(80) }, () => random.u32());
  }
  const packet = seen[random.below(seen.length)]!.slice();
  for (let changes = random.below(4); changes > 0; changes--) {
    packet[random.below(Math.min(packet.length, 48))] = random.u32();
  }
  // Often with the right opcode family, so that it gets past the first checks.
  if (random.below(3) === 0) packet[0] = (packet[0]! & 0xe0) | random.below(0x18);
  const cut = random.below(6);
  if (cut === 0) return packet.subarray(0, random.below(packet.length + 1));
  return cut === 1 ? Uint8Array.from([...packet, 0, 0, 0, 0]) : packet;
}

interface Live {
  readonly pair: HcaPair;
  readonly guarded: Guarded;
  readonly seen: Uint8Array[];
  /** What WRITEs go through. */
  readonly window: MemoryWindow;
  readonly uc: readonly [QueuePair, QueuePair];
  qpA: QueuePair;
  qpB: QueuePair;
}

function live(seed: number): Live {
  const pair = new HcaPair(seed);
  const qpA = pair.a.createQp();
  const qpB = pair.b.createQp();
  connect(pair, qpA, qpB);
  const gsi = pair.b.createQp({ type: QpType.GSI });
  gsi.modify({ state: QpState.INIT, pkeyIndex: 0, qkey: 0x80010000 });
  gsi.modify({ state: QpState.RTR });
  for (let i = 0; i < 64; i++) postReceive(pair.b, gsi, [{ offset: 0, length: 300 }]);
  const seen: Uint8Array[] = [];
  for (const side of [pair.a, pair.b]) {
    side.port.filter = (packet) => {
      if (seen.length < 512) seen.push(packet.slice());
      else seen[seen.length % 512] = packet.slice();
      return [packet];
    };
  }
  const uc = [pair.a.createQp({ type: QpType.UC }), pair.b.createQp({ type: QpType.UC })] as const;
  connectUc(pair, ...uc);
  const guarded = new Guarded(pair);
  const window = pair.b.driver.device.createMemoryWindow(pair.b.pd, 1);
  const { region } = guarded;
  const access = Access.REMOTE_WRITE;
  const rkey = nextRkey(window.rkey);
  const bind = { window, rkey, region, address: region.iova, length: GRANTED, access };
  postSend(pair.b, qpB, { opcode: WrOpcode.BIND_MW, bind });
  pair.run(100);
  assert.equal(drain(pair.b.sendCq)[0]?.status, 0);
  return { pair, guarded, seen, window, uc, qpA, qpB };
}

/** A SEND and a WRITE on UC: those always succeed here, and nothing from outside breaks them. */
function unreliableTraffic({ pair, window, uc }: Live): void {
  const [qpA, qpB] = uc;
  const segments = [{ offset: 0, length: 1500 }];
  if (qpB.receiveRing!.length < 8) postReceive(pair.b, qpB, [{ offset: 4096, length: 4096 }]);
  const remote = { remoteAddress: pair.b.base, rkey: window.rkey };
  postSend(pair.a, qpA, { opcode: WrOpcode.SEND, segments });
  postSend(pair.a, qpA, { opcode: WrOpcode.RDMA_WRITE, segments, ...remote });
  pair.run(50_000);
  drain(pair.b.receiveCq);
  assert.deepEqual(
    drain(pair.a.sendCq).map((c) => c.status),
    [0, 0],
  );
  assert.deepEqual([qpA.state, qpB.state], [QpState.RTS, QpState.RTS]);
}

/** One SEND, WRITE, READ and FETCH_ADD each; true when all of them succeeded. */
function traffic({ pair, guarded, window, qpA, qpB }: Live): boolean {
  const remote = { remoteAddress: pair.b.base, rkey: guarded.region.rkey };
  const segments = [{ offset: 0, length: 1500 }];
  postReceive(pair.b, qpB, [{ offset: 4096, length: 4096 }]);
  postSend(pair.a, qpA, { opcode: WrOpcode.SEND, segments });
  const write = { ...remote, rkey: window.rkey };
  postSend(pair.a, qpA, { opcode: WrOpcode.RDMA_WRITE, segments, ...write });
  postSend(pair.a, qpA, { opcode: WrOpcode.RDMA_READ, segments, ...remote });
  const atomic = { opcode: WrOpcode.ATOMIC_FETCH_AND_ADD, compareAdd: 1n, ...remote };
  postSend(pair.a, qpA, { ...atomic, segments: [{ offset: 0, length: 8 }] });
  pair.run(50_000);
  drain(pair.b.receiveCq);
  const done = drain(pair.a.sendCq);
  return done.length === 4 && done.every((c) => c.status === 0);
}

describe('Random and mutated datagrams', () => {
  it('of a stranger change nothing, and the connection goes on', () => {
    const setup = live(1);
    const { pair, guarded, seen } = setup;
    const random = new SeededRandom(77);
    assert.ok(traffic(setup));
    for (let sent = 0; sent < DATAGRAMS / 2; sent += BATCH) {
      for (let i = 0; i < BATCH; i++) {
        (i % 2 ? pair.a : pair.b).port.inject(datagram(random, seen), 0);
      }
      unreliableTraffic(setup);
      assert.ok(traffic(setup), `after ${sent} datagrams`);
    }
    guarded.check();
    assert.ok(pair.b.driver.device.counters.drops.wrongSource > 10_000);
  });

  it("in the peer's name touch nothing but what was granted", () => {
    let broken = 0;
    const setup = live(2);
    const { pair, guarded, seen } = setup;
    const random = new SeededRandom(78);
    for (let sent = 0; sent < DATAGRAMS / 2; sent += BATCH) {
      const bystanders = pair.b.bytes.slice(8192);
      for (let i = 0; i < BATCH; i++) {
        (i % 2 ? pair.a : pair.b).port.inject(datagram(random, seen));
      }
      if (!traffic(setup)) {
        // A packet that is right in every respect may end the connection: a new one works.
        broken += 1;
        setup.qpA.destroy();
        setup.qpB.destroy();
        setup.qpA = pair.a.createQp();
        setup.qpB = pair.b.createQp();
        pair.run(10_000);
        drain(pair.a.sendCq);
        drain(pair.b.receiveCq);
        drain(pair.a.receiveCq);
        connect(pair, setup.qpA, setup.qpB);
      }
      unreliableTraffic(setup);
      assert.deepEqual(pair.b.bytes.subarray(8192), bystanders);
    }
    guarded.check();
    assert.ok(broken < DATAGRAMS / 2 / BATCH);
    const { drops } = pair.b.driver.device.counters;
    for (const reason of [
      'tooShort',
      'unknownOpcode',
      'unknownQpn',
      'misaligned',
      'duplicate',
    ] as const) {
      assert.ok(drops[reason] > 0, reason);
    }
  });
});
