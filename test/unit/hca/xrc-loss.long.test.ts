/** XRC when a packet is lost, repeated or late: each operation once, in order, bytes right. */
import assert from 'node:assert/strict';
import { WcStatus, WrOpcode } from '../../../core/spi/index.js';
import { drain, postSend } from '../../support/hca-pair.js';
import type { PacketFilter } from '../../support/memory-port.js';
import { XRC_MTU, XrcHcaPair } from '../../support/xrc-hca-pair.js';

const SIZE = 4 * XRC_MTU + 9;
const FROM = 0x1000;
const SEND_TO = 0x20000;
const WRITE_TO = 0x28000;
const READ_FROM = 0x30000;
const READ_TO = 0x38000;
const COUNTER = 0x40000;

function start(): XrcHcaPair {
  const pair = new XrcHcaPair(2);
  for (const [i, side] of [pair.a, pair.b].entries()) {
    side.bytes.subarray(0, 0x2000).forEach((_, j) => (side.bytes[j] = (j * 7 + i) & 0xff));
  }
  pair.b.bytes.subarray(READ_FROM, READ_FROM + SIZE).forEach((_, j) => {
    pair.b.bytes[READ_FROM + j] = (j * 13) & 0xff;
  });
  new DataView(pair.b.bytes.buffer).setBigUint64(COUNTER, 10n, true);
  return pair;
}

/** SENDs to both receivers with everything else between, all in flight together. */
function post(pair: XrcHcaPair): void {
  const [first, second] = pair.receivers;
  first!.post(0, SEND_TO, SIZE);
  // The write with immediate takes one too, and leaves it as it is.
  second!.post(0, 0, 0);
  second!.post(1, SEND_TO + 0x4000, SIZE);
  const requests = [
    { opcode: WrOpcode.SEND, to: first!, at: FROM, length: SIZE, remote: 0 },
    { opcode: WrOpcode.RDMA_WRITE_WITH_IMM, to: second!, at: FROM, length: SIZE, remote: WRITE_TO },
    { opcode: WrOpcode.RDMA_READ, to: first!, at: READ_TO, length: SIZE, remote: READ_FROM },
    { opcode: WrOpcode.ATOMIC_FETCH_AND_ADD, to: second!, at: 0x3f000, length: 8, remote: COUNTER },
    { opcode: WrOpcode.SEND, to: second!, at: FROM + 8, length: SIZE, remote: 0 },
  ];
  for (const [cookie, { opcode, to, at, length, remote }] of requests.entries()) {
    postSend(pair.a, pair.initiator, {
      opcode,
      cookie,
      xrcSrqn: to.srq.srqn,
      segments: [{ offset: at, length }],
      remoteAddress: pair.b.base + BigInt(remote),
      rkey: to.region.rkey,
      immediate: 0x77,
      compareAdd: 5n,
    });
  }
}

function check(pair: XrcHcaPair, what: string): void {
  const sent = drain(pair.a.sendCq).map(({ cookie, status }) => [cookie, status]);
  assert.deepEqual(
    sent,
    [0, 1, 2, 3, 4].map((cookie) => [cookie, WcStatus.SUCCESS]),
    what,
  );
  const received = pair.receivers.map((receiver) =>
    receiver.drain().map(({ status, byteLength, wqeIndex }) => [status, byteLength, wqeIndex]),
  );
  assert.deepEqual(
    received,
    [
      [[0, SIZE, 0]],
      [
        [0, SIZE, 0],
        [0, SIZE, 1],
      ],
    ],
    what,
  );
  const { a, b } = pair;
  const same = (to: Uint8Array, at: number, from: Uint8Array, start: number): void =>
    assert.deepEqual(
      Buffer.from(to.subarray(at, at + SIZE)),
      Buffer.from(from.subarray(start, start + SIZE)),
      what,
    );
  same(b.bytes, SEND_TO, a.bytes, FROM);
  same(b.bytes, WRITE_TO, a.bytes, FROM);
  same(a.bytes, READ_TO, b.bytes, READ_FROM);
  same(b.bytes, SEND_TO + 0x4000, a.bytes, FROM + 8);
  assert.equal(new DataView(b.bytes.buffer).getBigUint64(COUNTER, true), 15n, what);
  assert.equal(new DataView(a.bytes.buffer).getBigUint64(0x3f000, true), 10n, what);
}

type Action = (packet: Uint8Array, held: Uint8Array[]) => readonly Uint8Array[];

const ACTIONS: Readonly<Record<string, Action>> = {
  lost: () => [],
  repeated: (packet) => [packet, packet.slice()],
  late: (packet, held) => {
    held.push(packet.slice());
    return [];
  },
};

/** The n-th packet of a direction meets the action; false when there are fewer. */
function runOnce(side: 'a' | 'b', n: number, name: string): boolean {
  const pair = start();
  let seen = 0;
  const held: Uint8Array[] = [];
  const filter: PacketFilter = (packet) => {
    if (seen++ === n) return ACTIONS[name]!(packet, held);
    // What was late comes behind the two packets after it.
    return seen > n + 3 && held.length > 0 ? [packet, held.shift()!] : [packet];
  };
  pair[side].port.filter = filter;
  post(pair);
  pair.run(500_000);
  check(pair, `packet ${n} of ${side} ${name}`);
  return seen > n;
}

describe('XRC: loss sweeps', () => {
  for (const side of ['a', 'b'] as const) {
    for (const name of Object.keys(ACTIONS)) {
      it(`any packet of side ${side} ${name}`, () => {
        let n = 0;
        while (runOnce(side, n, name)) n++;
        assert.ok(n >= 6, `${n} packets`);
      });
    }
  }

  it('two packets lost, every pair of the first 24', () => {
    for (let first = 0; first < 24; first++) {
      for (let second = first + 1; second < 24; second++) {
        const pair = start();
        let seen = 0;
        const lose: PacketFilter = (packet) => {
          const n = seen++;
          return n === first || n === second ? [] : [packet];
        };
        pair.a.port.filter = pair.b.port.filter = lose;
        post(pair);
        pair.run(1_000_000);
        check(pair, `packets ${first} and ${second} lost`);
      }
    }
  });
});
