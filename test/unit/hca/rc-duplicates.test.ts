/** What an RC responder says to a request that it has had, or that it cannot have had. */
import assert from 'node:assert/strict';
import { AsyncEventType, QpState, type QueuePair } from '../../../core/spi/index.js';
import { HcaPair, connect, drain, postReceive } from '../../support/hca-pair.js';
import { packet, reth } from '../../support/request-packets.js';

const A_PSN = 0xfffffa;
const MTU = 1024;
const OPCODE = {
  SEND_FIRST: 0,
  SEND_ONLY: 4,
  WRITE_ONLY: 10,
  WRITE_IMMEDIATE: 11,
  READ: 12,
  READ_FIRST: 13,
  READ_LAST: 15,
  READ_ONLY: 16,
  ACK: 17,
  ATOMIC_ACK: 18,
  FETCH_ADD: 20,
} as const;
const four = [1, 2, 3, 4];

interface Scene {
  readonly pair: HcaPair;
  readonly qpB: QueuePair;
  /** A packet arrives; returns opcode, PSN and (of an ACK) syndrome of each answer. */
  readonly say: (opcode: number, psn: number, rest: readonly number[]) => number[][];
  /** RETH of b's own memory, with changes. */
  readonly range: (length: number, offset?: number, rkey?: number) => number[];
}

function scene(): Scene {
  const pair = new HcaPair(31);
  const [qpA, qpB] = [pair.a.createQp(), pair.b.createQp()];
  connect(pair, qpA, qpB, {}, MTU);
  for (let i = 0; i < 4; i++) postReceive(pair.b, qpB, [{ offset: 64, length: 4 * MTU }]);
  let answers: number[][] = [];
  pair.b.port.filter = (bytes) => {
    const psn = new DataView(bytes.buffer, bytes.byteOffset).getUint32(8) & 0xffffff;
    answers.push([bytes[0]!, psn, ...(bytes[0] === OPCODE.ACK ? [bytes[12]!] : [])]);
    return [];
  };
  const say: Scene['say'] = (opcode, psn, rest) => {
    answers = [];
    pair.b.port.inject(packet(opcode, qpB.qpn, psn & 0xffffff, rest, true));
    while (pair.b.driver.pump());
    return answers;
  };
  const { base, region } = pair.b;
  const range: Scene['range'] = (length, offset = 0, rkey = region.rkey) =>
    reth(base + BigInt(offset), rkey, length);
  return { pair, qpB, say, range };
}

/** AtomicETH of a fetch and add of 1. */
const fetchAdd = (range: number[]): number[] => [
  ...range.slice(0, 12),
  ...[0, 0, 0, 0, 0, 0, 0, 1],
  ...[0, 0, 0, 0, 0, 0, 0, 0],
];

describe('RC: a duplicate of nothing that was executed', () => {
  for (const [what, opcode, rest] of [
    ['SEND', OPCODE.SEND_ONLY, () => four],
    ['WRITE', OPCODE.WRITE_ONLY, ({ range }: Scene) => [...range(4), ...four]],
  ] as const) {
    it(`is not acknowledged: ${what} before the first packet`, () => {
      const here = scene();
      assert.deepEqual(here.say(opcode, A_PSN - 1, rest(here)), []);
      assert.equal(here.pair.b.driver.device.counters.drops.duplicate, 1);
      assert.equal(drain(here.pair.b.receiveCq).length, 0);
    });

    it(`is not acknowledged: ${what} before the first packet, when there was only a READ`, () => {
      const here = scene();
      assert.deepEqual(here.say(OPCODE.READ, A_PSN, here.range(8)), [[OPCODE.READ_ONLY, A_PSN]]);
      assert.deepEqual(here.say(opcode, A_PSN - 1, rest(here)), []);
    });
  }

  it('is not answered: a READ or an atomic before the first packet', () => {
    const here = scene();
    const { range, say, pair } = here;
    const before = pair.b.bytes.slice(0, 8);
    assert.deepEqual(say(OPCODE.READ, A_PSN - 1, range(8)), []);
    assert.deepEqual(say(OPCODE.FETCH_ADD, A_PSN - 1, fetchAdd(range(8))), []);
    assert.deepEqual(pair.b.bytes.slice(0, 8), before);
  });

  it('is acknowledged with the last PSN executed once there is one, of whichever request', () => {
    const here = scene();
    const { range, say } = here;
    assert.deepEqual(say(OPCODE.FETCH_ADD, A_PSN, fetchAdd(range(8))), [
      [OPCODE.ATOMIC_ACK, A_PSN],
    ]);
    assert.deepEqual(say(OPCODE.SEND_ONLY, A_PSN - 1, four), [[OPCODE.ACK, A_PSN, 0x1f]]);
  });
});

describe('RC: a repeated READ', () => {
  const LENGTH = 3 * MTU + 8;
  const whole = [OPCODE.READ_FIRST, 14, 14, OPCODE.READ_LAST];

  it('is answered within the one kept, whole or from a packet on', () => {
    const { say, range } = scene();
    assert.deepEqual(
      say(OPCODE.READ, A_PSN, range(LENGTH)).map(([opcode]) => opcode),
      whole,
    );
    assert.deepEqual(
      say(OPCODE.READ, A_PSN, range(LENGTH)).map(([opcode]) => opcode),
      whole,
    );
    assert.deepEqual(say(OPCODE.READ, A_PSN + 2, range(LENGTH - 2 * MTU, 2 * MTU)), [
      [OPCODE.READ_FIRST, A_PSN + 2],
      [OPCODE.READ_LAST, A_PSN + 3],
    ]);
  });

  it('is answered with exactly what it asks for, from within the one kept', () => {
    const { pair, qpB, say, range } = scene();
    for (let i = 0; i < LENGTH; i++) pair.b.bytes[i] = i % 251;
    const payloads: Uint8Array[] = [];
    const { filter } = pair.b.port;
    pair.b.port.filter = (bytes, port) => {
      const first = bytes[0] === 14 ? 12 : 16;
      payloads.push(bytes.slice(first, bytes.length - ((bytes[1]! >>> 4) % 4)));
      return filter?.(bytes, port) ?? [];
    };
    say(OPCODE.READ, A_PSN, range(LENGTH));
    for (const [later, offset, length] of [
      [0, 0, 10],
      [0, 0, 0],
      [0, 0, 1000],
      [0, 8, 10],
      [1, 0, 8],
      [3, 5, MTU],
      [1, 5, 2 * MTU + 3],
      [0, LENGTH, 0],
    ] as const) {
      payloads.length = 0;
      const answers = say(OPCODE.READ, A_PSN + later, range(length, offset));
      const packets = Math.max(1, Math.ceil(length / MTU));
      assert.deepEqual(
        answers.map(([, psn]) => psn),
        Array.from({ length: packets }, (_, i) => (A_PSN + later + i) & 0xffffff),
      );
      assert.deepEqual(
        Buffer.concat(payloads),
        Buffer.from(pair.b.bytes.slice(offset, offset + length)),
      );
    }
    assert.equal(qpB.state, QpState.RTS);
  });

  const beyond: Readonly<Record<string, (range: Scene['range']) => [number, number[]]>> = {
    'a byte longer': (range) => [0, range(LENGTH + 1)],
    'much longer': (range) => [0, range(1 << 20)],
    'longer from its second packet on': (range) => [1, range(LENGTH, MTU)],
    'a byte before it': (range) => [0, range(8, -1)],
    'past its end': (range) => [0, range(1, LENGTH)],
    'in more packets than are left of it': (range) => [1, range(LENGTH)],
    'beyond 4 GiB': (range) => [0, [...range(8).slice(0, 3), 1, ...range(8).slice(4)]],
    'by another key': (range) => [0, range(8, 0, 0x1234)],
  };
  for (const [what, changed] of Object.entries(beyond)) {
    it(`is not answered beyond the one kept: ${what}`, () => {
      const { pair, qpB, say, range } = scene();
      say(OPCODE.READ, A_PSN, range(LENGTH));
      const [later, rest] = changed(range);
      assert.deepEqual(say(OPCODE.READ, A_PSN + later, rest), []);
      assert.equal(pair.b.driver.device.counters.drops.replayUnknown, 1);
      assert.equal(qpB.state, QpState.RTS, 'a late duplicate does not end the connection');
    });
  }
});

describe('RC: a reserved opcode', () => {
  for (const opcode of [0x15, 0x18, 0x19, 0x1a, 0x1b, 0x1e, 0x1f]) {
    it(`is an invalid request at the expected PSN only: 0x${opcode.toString(16)}`, () => {
      const { pair, qpB, say } = scene();
      say(OPCODE.SEND_ONLY, A_PSN, four);
      assert.deepEqual(say(opcode, A_PSN, []), []);
      assert.equal(qpB.state, QpState.RTS);
      assert.deepEqual(say(opcode, A_PSN + 1, []), [[OPCODE.ACK, A_PSN + 1, 0x61]]);
      assert.equal(qpB.state, QpState.ERR);
      assert.ok(pair.b.events.includes(AsyncEventType.QP_REQ_ERR));
    });
  }
});

describe('RC: communication established', () => {
  const first: Readonly<Record<string, (here: Scene) => [number, number[]]>> = {
    SEND: () => [OPCODE.SEND_ONLY, four],
    'a SEND of several packets': () => [OPCODE.SEND_FIRST, new Array<number>(MTU).fill(1)],
    'a WRITE': ({ range }) => [OPCODE.WRITE_ONLY, [...range(4), ...four]],
    'a WRITE without data': ({ range }) => [OPCODE.WRITE_ONLY, range(0)],
    'a WRITE with immediate data': ({ range }) => [
      OPCODE.WRITE_IMMEDIATE,
      [...range(4), ...four, ...four],
    ],
    'a READ': ({ range }) => [OPCODE.READ, range(8)],
    'an atomic': ({ range }) => [OPCODE.FETCH_ADD, fetchAdd(range(8))],
  };
  for (const [what, make] of Object.entries(first)) {
    it(`is told once in RTR, when the first packet is of ${what}`, () => {
      const here = scene();
      const { pair, qpB, say } = here;
      qpB.modify({ state: QpState.RESET });
      qpB.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: 15 });
      qpB.modify({
        state: QpState.RTR,
        addressVector: { gid: pair.a.port.gids[0]!, localGidIndex: 0 },
        pathMtuBytes: MTU,
        destinationQpn: qpB.query().destinationQpn ?? 0,
        receivePsn: A_PSN,
        maxDestRdAtomic: 4,
        minRnrTimer: 1,
      });
      postReceive(pair.b, qpB, [{ offset: 64, length: 4 * MTU }]);
      const told = (): number =>
        pair.b.events.filter((event) => event === AsyncEventType.COMM_EST).length;
      const [opcode, rest] = make(here);
      say(opcode, A_PSN, rest);
      assert.equal(told(), 1);
      say(OPCODE.WRITE_ONLY, A_PSN + 1, here.range(0));
      assert.equal(told(), 1);
    });
  }
});
