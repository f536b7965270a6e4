import assert from 'node:assert/strict';
import {
  QpState,
  type QueuePair,
  WcOpcode,
  WcStatus,
  WrFlags,
  WrOpcode,
} from '../../../core/spi/index.js';
import { SeededRandom } from '../../../providers/mock/index.js';
import { HcaPair, connect, drain, postReceive, postSend } from '../../support/hca-pair.js';
import type { PacketFilter } from '../../support/memory-port.js';

const MTU = 256;
const SIZE = 5 * MTU + 9;
const MESSAGES = 3;

interface Exchange {
  readonly name: string;
  post(pair: HcaPair, qpA: QueuePair, qpB: QueuePair): void;
  check(pair: HcaPair): void;
}

const at = (i: number): number => i * 0x4000;
const targetOf = (i: number): number => 0x40000 + i * 0x4000;

function samePlaces(from: Uint8Array, to: Uint8Array): void {
  for (let i = 0; i < MESSAGES; i++) {
    assert.deepEqual(
      to.subarray(targetOf(i), targetOf(i) + SIZE + 16),
      Uint8Array.from([...from.subarray(at(i), at(i) + SIZE), ...new Uint8Array(16)]),
    );
  }
}

const send: Exchange = {
  name: 'SEND',
  post(pair, qpA, qpB) {
    for (let i = 0; i < MESSAGES; i++) {
      postReceive(pair.b, qpB, [{ offset: targetOf(i), length: SIZE }], i);
      const segments = [{ offset: at(i), length: SIZE }];
      postSend(pair.a, qpA, { opcode: WrOpcode.SEND, segments, cookie: i });
    }
  },
  check(pair) {
    const received = drain(pair.b.receiveCq);
    assert.deepEqual(
      received.map((c) => [c.cookie, c.status, c.byteLength]),
      [
        [0, WcStatus.SUCCESS, SIZE],
        [1, WcStatus.SUCCESS, SIZE],
        [2, WcStatus.SUCCESS, SIZE],
      ],
    );
    samePlaces(pair.a.bytes, pair.b.bytes);
  },
};

const write: Exchange = {
  name: 'WRITE',
  post(pair, qpA) {
    for (let i = 0; i < MESSAGES; i++) {
      postSend(pair.a, qpA, {
        opcode: WrOpcode.RDMA_WRITE,
        segments: [{ offset: at(i), length: SIZE }],
        remoteAddress: pair.b.base + BigInt(targetOf(i)),
        rkey: pair.b.region.rkey,
        cookie: i,
      });
    }
  },
  check(pair) {
    samePlaces(pair.a.bytes, pair.b.bytes);
  },
};

const read: Exchange = {
  name: 'READ',
  post(pair, qpA) {
    for (let i = 0; i < MESSAGES; i++) {
      postSend(pair.a, qpA, {
        opcode: WrOpcode.RDMA_READ,
        segments: [{ offset: targetOf(i), length: SIZE }],
        remoteAddress: pair.b.base + BigInt(at(i)),
        rkey: pair.b.region.rkey,
        cookie: i,
      });
    }
  },
  check(pair) {
    samePlaces(pair.b.bytes, pair.a.bytes);
  },
};

const atomic: Exchange = {
  name: 'FETCH_ADD, with a READ and a WRITE between',
  post(pair, qpA) {
    const remote = { remoteAddress: pair.b.base, rkey: pair.b.region.rkey };
    new DataView(pair.b.bytes.buffer).setBigUint64(0, 0xffffffffn, true);
    const operations = [
      { opcode: WrOpcode.ATOMIC_FETCH_AND_ADD, compareAdd: 1n },
      { opcode: WrOpcode.RDMA_READ },
      { opcode: WrOpcode.ATOMIC_CMP_AND_SWP, compareAdd: 0x100000000n, swap: 0x1234567890n },
    ];
    for (const [i, operation] of operations.entries()) {
      const segments = [{ offset: targetOf(i), length: 8 }];
      postSend(pair.a, qpA, { ...operation, ...remote, segments, cookie: i });
    }
  },
  check(pair) {
    const view = new DataView(pair.a.bytes.buffer);
    assert.equal(view.getBigUint64(targetOf(0), true), 0xffffffffn);
    assert.equal(view.getBigUint64(targetOf(2), true), 0x100000000n);
    const after = new DataView(pair.b.bytes.buffer).getBigUint64(0, true);
    assert.equal(after, 0x1234567890n, 'each atomic took effect once');
  },
};

/** Runs an exchange with a filter in both ports; returns the packets that were offered to it. */
function runExchange(exchange: Exchange, filter: (n: number) => PacketFilter | undefined): number {
  const pair = new HcaPair(3, { memoryBytes: 0x60000 });
  const qpA = pair.a.createQp();
  const qpB = pair.b.createQp();
  connect(pair, qpA, qpB, {}, MTU);
  const random = new SeededRandom(5);
  for (const side of [pair.a, pair.b]) {
    for (let i = 0; i < at(MESSAGES); i++) side.bytes[i] = random.u32();
  }
  let offered = 0;
  for (const side of [pair.a, pair.b]) {
    side.port.filter = (packet, from) => {
      const wanted = filter(offered++);
      return wanted ? wanted(packet, from) : [packet];
    };
  }
  exchange.post(pair, qpA, qpB);
  pair.run(2_000_000);
  assert.deepEqual(
    drain(pair.a.sendCq).map((c) => [c.cookie, c.status]),
    [
      [0, WcStatus.SUCCESS],
      [1, WcStatus.SUCCESS],
      [2, WcStatus.SUCCESS],
    ],
  );
  exchange.check(pair);
  assert.deepEqual([qpA.state, qpB.state], [QpState.RTS, QpState.RTS]);
  assert.deepEqual([...pair.a.events, ...pair.b.events], []);
  assert.equal(pair.a.driver.nextDeadlineUs(), Infinity, 'no timer is left');
  return offered;
}

const lose: PacketFilter = () => [];
const repeat: PacketFilter = (packet) => [packet, packet];

for (const exchange of [send, write, read, atomic]) {
  describe(`RC ${exchange.name} over a bad link`, () => {
    it('survives the loss of any one packet', () => {
      const packets = runExchange(exchange, () => undefined);
      assert.ok(packets >= 4);
      for (let lost = 0; lost < packets; lost++) {
        const offered = runExchange(exchange, (n) => (n === lost ? lose : undefined));
        assert.ok(offered >= packets, `packet ${lost} was sent again`);
      }
    });

    it('survives the loss of any two packets in a row', () => {
      const packets = runExchange(exchange, () => undefined);
      for (let lost = 0; lost < packets; lost++) {
        runExchange(exchange, (n) => (n === lost || n === lost + 1 ? lose : undefined));
      }
    });

    it('takes a repeated packet once', () => {
      const packets = runExchange(exchange, () => undefined);
      for (let twice = 0; twice < packets; twice++) {
        runExchange(exchange, (n) => (n === twice ? repeat : undefined));
      }
    });

    it('survives any packet coming late', () => {
      const packets = runExchange(exchange, () => undefined);
      for (let late = 0; late < packets; late++) {
        for (const by of [1, 3]) {
          let held: Uint8Array | undefined;
          const hold: PacketFilter = (packet) => {
            held = packet.slice();
            return [];
          };
          const release: PacketFilter = (packet) => (held ? [packet, held] : [packet]);
          runExchange(exchange, (n) => (n === late ? hold : n === late + by ? release : undefined));
        }
      }
    });

    it('survives random loss, repetition and reordering', () => {
      for (let seed = 0; seed < 60; seed++) {
        const random = new SeededRandom(seed);
        const held: Uint8Array[] = [];
        const chaos: PacketFilter = (packet) => {
          const dice = random.below(10);
          const late = held.splice(0);
          if (dice === 0) return late;
          if (dice === 1) return [packet, packet, ...late];
          if (dice === 2) held.push(packet.slice());
          return dice === 2 ? late : [packet, ...late];
        };
        runExchange(exchange, (n) => (n < 200 ? chaos : undefined));
      }
    });
  });
}

describe('RC unsignalled requests', () => {
  it('complete with the next signalled one', () => {
    const pair = new HcaPair();
    const qpA = pair.a.createQp();
    const qpB = pair.b.createQp();
    connect(pair, qpA, qpB);
    for (let i = 0; i < 4; i++) {
      postReceive(pair.b, qpB, [{ offset: 0, length: 8 }], i);
      const flags = i === 3 ? WrFlags.SIGNALED : 0;
      const segments = [{ offset: 0, length: 8 }];
      postSend(pair.a, qpA, { opcode: WrOpcode.SEND, segments, cookie: i, flags });
    }
    pair.run(1000);
    const sent = drain(pair.a.sendCq);
    assert.deepEqual(
      sent.map((c) => [c.cookie, c.wqeIndex, c.opcode]),
      [[3, 3, WcOpcode.SEND]],
    );
    assert.equal(drain(pair.b.receiveCq).length, 4);
    assert.equal(pair.b.driver.device.counters.acksSent, 1, 'one ACK for the burst');
  });
});
