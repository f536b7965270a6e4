import assert from 'node:assert/strict';
import {
  Access,
  AsyncEventType,
  QpState,
  QpType,
  WcFlags,
  WcOpcode,
  WcStatus,
  WrFlags,
  WrOpcode,
  nextRkey,
} from '../../../core/spi/index.js';
import type { QueuePair, QueuePairInit } from '../../../core/spi/index.js';
import {
  HcaPair,
  connectUc,
  drain,
  postReceive,
  postSend,
  postShared,
} from '../../support/hca-pair.js';
import type { SendRequest } from '../../support/hca-pair.js';

const MTU = 1024;
const { SUCCESS, WR_FLUSH_ERR } = WcStatus;
const ALL = Access.LOCAL_WRITE | Access.REMOTE_WRITE;

interface Connected {
  readonly pair: HcaPair;
  readonly qpA: QueuePair;
  readonly qpB: QueuePair;
}

function connected(init: Partial<QueuePairInit> = {}, accessFlags: number = ALL): Connected {
  const pair = new HcaPair(4);
  const qpA = pair.a.createQp({ type: QpType.UC });
  const qpB = pair.b.createQp({ type: QpType.UC, ...init });
  connectUc(pair, qpA, qpB, { accessFlags });
  for (let i = 0; i < 8192; i++) pair.a.bytes[i] = (i % 251) | 1;
  return { pair, qpA, qpB };
}

const send = (length: number, cookie = 0): SendRequest => ({
  opcode: WrOpcode.SEND,
  segments: [{ offset: 0, length }],
  cookie,
});
const write = (pair: HcaPair, length: number, offset = 0x4000): SendRequest => ({
  opcode: WrOpcode.RDMA_WRITE,
  segments: [{ offset: 0, length }],
  remoteAddress: pair.b.base + BigInt(offset),
  rkey: pair.b.region.rkey,
});
const area = (offset: number, length = 4096): { offset: number; length: number }[] => [
  { offset, length },
];
const copied = (pair: HcaPair, at: number, length: number): boolean =>
  Buffer.compare(pair.b.bytes.subarray(at, at + length), pair.a.bytes.subarray(0, length)) === 0;

/** Loses those of a's packets whose numbers, counted from 0, are listed. */
function lose(pair: HcaPair, ...numbers: readonly number[]): void {
  let count = 0;
  pair.a.port.filter = (packet) => (numbers.includes(count++) ? [] : [packet]);
}

describe('UC queue pair', () => {
  it('carries SEND and WRITE of any length, with immediate and without, unacknowledged', () => {
    for (const length of [0, 1, MTU - 1, MTU, MTU + 1, 4 * MTU - 3]) {
      const { pair, qpA, qpB } = connected();
      for (let i = 0; i < 3; i++) postReceive(pair.b, qpB, area(i * 4096), i);
      postSend(pair.a, qpA, send(length, 1));
      postSend(pair.a, qpA, { ...send(length, 2), opcode: WrOpcode.SEND_WITH_IMM, immediate: 5 });
      postSend(pair.a, qpA, { ...write(pair, length), cookie: 3 });
      const opcode = WrOpcode.RDMA_WRITE_WITH_IMM;
      postSend(pair.a, qpA, { ...write(pair, length, 0x8000), cookie: 4, opcode, immediate: 6 });
      pair.run(100);
      assert.deepEqual(
        drain(pair.a.sendCq).map((c) => [c.cookie, c.status, c.byteLength]),
        [1, 2, 3, 4].map((cookie) => [cookie, SUCCESS, length]),
      );
      assert.deepEqual(
        drain(pair.b.receiveCq).map((c) => [
          c.cookie,
          c.opcode,
          c.flags,
          c.byteLength,
          c.immediate,
        ]),
        [
          [0, WcOpcode.RECV, 0, length, 0],
          [1, WcOpcode.RECV, WcFlags.WITH_IMM, length, 5],
          [2, WcOpcode.RECV_RDMA_WITH_IMM, WcFlags.WITH_IMM, length, 6],
        ],
      );
      for (const at of [0, 4096, 0x4000, 0x8000]) assert.ok(copied(pair, at, length), `${at}`);
      assert.equal(pair.b.port.counters.sentPackets, 0, 'nobody acknowledges');
    }
  });

  it('is on the wire as IBTA has it: opcodes from 0x20, no AckReq, PSNs in a row', () => {
    const { pair, qpA } = connected();
    const sent: Uint8Array[] = [];
    pair.a.port.filter = (packet) => {
      sent.push(packet.slice());
      return [packet];
    };
    postSend(pair.a, qpA, send(2 * MTU + 1));
    postSend(pair.a, qpA, { ...send(8), opcode: WrOpcode.SEND_WITH_IMM, immediate: 0x01020304 });
    postSend(pair.a, qpA, write(pair, 2 * MTU));
    const opcode = WrOpcode.RDMA_WRITE_WITH_IMM;
    postSend(pair.a, qpA, { ...write(pair, 8), opcode, immediate: 9 });
    pair.run(100);
    assert.deepEqual(
      sent.map((packet) => packet[0]),
      [0x20, 0x21, 0x22, 0x25, 0x26, 0x28, 0x2b],
    );
    const words = sent.map((packet) => new DataView(packet.buffer, packet.byteOffset).getUint32(8));
    assert.deepEqual(words, [0xfffffe, 0xffffff, 0, 1, 2, 3, 4]);
    // BTH and ImmDt; BTH, RETH and ImmDt.
    assert.deepEqual([...sent[3]!.subarray(12, 16)], [1, 2, 3, 4]);
    assert.deepEqual([...sent[6]!.subarray(28, 32)], [0, 0, 0, 9]);
  });

  it('gathers segments, takes inline payload, and has no completion of what is unsignalled', () => {
    const { pair, qpA, qpB } = connected();
    for (let i = 0; i < 2; i++) postReceive(pair.b, qpB, area(i * 4096), i);
    const segments = [
      { offset: 0, length: 1000 },
      { offset: 1000, length: 500 },
    ];
    postSend(pair.a, qpA, { opcode: WrOpcode.SEND, segments, flags: 0 });
    const flags = WrFlags.SIGNALED | WrFlags.SOLICITED;
    postSend(pair.a, qpA, { opcode: WrOpcode.SEND, inline: Uint8Array.of(1, 2, 3), flags });
    pair.run(100);
    assert.equal(drain(pair.a.sendCq).length, 1);
    const [first, second] = drain(pair.b.receiveCq);
    assert.ok(first?.byteLength === 1500 && copied(pair, 0, 1500));
    assert.deepEqual([second?.byteLength, second?.flags], [3, WcFlags.SOLICITED]);
    assert.deepEqual([...pair.b.bytes.subarray(4096, 4100)], [1, 2, 3, 0]);
  });

  it('completes a send only when the port has taken its last packet', () => {
    const { pair, qpA } = connected();
    pair.a.port.sendCredit = 2;
    postSend(pair.a, qpA, send(8));
    postSend(pair.a, qpA, send(3 * MTU));
    pair.run(100);
    assert.equal(drain(pair.a.sendCq).length, 1);
    pair.a.port.sendCredit = Infinity;
    pair.run(100);
    assert.equal(drain(pair.a.sendCq).length, 1);
  });

  describe('loses', () => {
    for (let lost = 0; lost < 4; lost++) {
      it(`a SEND of four packets with packet ${lost}; its receive is the next one's`, () => {
        const { pair, qpA, qpB } = connected();
        lose(pair, lost);
        for (let i = 0; i < 2; i++) postReceive(pair.b, qpB, area(i * 4096), i);
        postSend(pair.a, qpA, { ...send(4 * MTU), opcode: WrOpcode.SEND_WITH_IMM, immediate: 1 });
        postSend(pair.a, qpA, { ...send(3 * MTU), opcode: WrOpcode.SEND_WITH_IMM, immediate: 2 });
        postSend(pair.a, qpA, { ...send(8), opcode: WrOpcode.SEND_WITH_IMM, immediate: 3 });
        pair.run(100);
        assert.deepEqual(
          drain(pair.b.receiveCq).map((c) => [c.cookie, c.status, c.immediate, c.byteLength]),
          [
            [0, SUCCESS, 2, 3 * MTU],
            [1, SUCCESS, 3, 8],
          ],
        );
        assert.ok(copied(pair, 0, 3 * MTU));
        assert.ok(drain(pair.a.sendCq).every((c) => c.status === SUCCESS));
        assert.equal(qpB.state, QpState.RTS);
      });

      it(`a WRITE with immediate of four packets with packet ${lost}`, () => {
        const { pair, qpA, qpB } = connected();
        lose(pair, lost);
        postReceive(pair.b, qpB, area(0));
        const imm = { opcode: WrOpcode.RDMA_WRITE_WITH_IMM };
        postSend(pair.a, qpA, { ...write(pair, 4 * MTU), ...imm, immediate: 1 });
        postSend(pair.a, qpA, { ...write(pair, 4 * MTU, 0x8000), ...imm, immediate: 2 });
        pair.run(100);
        assert.deepEqual(
          drain(pair.b.receiveCq).map((c) => c.immediate),
          [2],
        );
        assert.ok(copied(pair, 0x8000, 4 * MTU));
        // What came before the hole is written, nothing behind it.
        const written = pair.b.bytes.subarray(0x4000, 0x8000).indexOf(0);
        assert.equal(written, lost * MTU);
      });
    }

    it('single packets: those that arrive are whole, in order, once', () => {
      const { pair, qpA, qpB } = connected();
      for (let i = 0; i < 20; i++) postReceive(pair.b, qpB, area(i * 64, 64), i);
      let count = 0;
      let held: Uint8Array | undefined;
      pair.a.port.filter = (packet) => {
        const number = count++;
        if (number % 5 === 0) return [];
        if (number % 5 === 1) return [packet.slice(), packet];
        if (number % 5 === 2) {
          held = packet.slice();
          return [];
        }
        return number % 5 === 3 ? [packet.slice(), held!] : [packet];
      };
      for (let i = 0; i < 20; i++) {
        postSend(pair.a, qpA, { ...send(8), opcode: WrOpcode.SEND_WITH_IMM, immediate: i });
      }
      pair.run(100);
      assert.deepEqual(
        drain(pair.b.receiveCq).map((c) => c.immediate),
        [1, 3, 4, 6, 8, 9, 11, 13, 14, 16, 18, 19],
      );
      assert.equal(pair.b.driver.device.counters.drops.duplicate, 8);
    });

    it('a message for which there is no receive, and no more than that', () => {
      const { pair, qpA, qpB } = connected();
      postSend(pair.a, qpA, send(3 * MTU));
      pair.run(100);
      postReceive(pair.b, qpB, area(0), 1);
      postSend(pair.a, qpA, send(2 * MTU));
      pair.run(100);
      assert.equal(drain(pair.b.receiveCq)[0]?.byteLength, 2 * MTU);
      assert.equal(pair.b.driver.device.counters.drops.noReceive, 1);
      assert.equal(pair.b.driver.device.counters.drops.sequenceGap, 2);
    });

    it('a message that is longer than its receive; a shorter one fits', () => {
      const { pair, qpA, qpB } = connected();
      postReceive(pair.b, qpB, area(0, 1500), 7);
      postSend(pair.a, qpA, send(1501));
      postSend(pair.a, qpA, send(1500));
      pair.run(100);
      assert.deepEqual(
        drain(pair.b.receiveCq).map((c) => [c.cookie, c.byteLength]),
        [[7, 1500]],
      );
      assert.equal(pair.b.driver.device.counters.drops.bufferTooSmall, 1);
    });

    const refused: [string, number, (pair: HcaPair) => Partial<SendRequest>][] = [
      ['a wrong rkey', ALL, () => ({ rkey: 1 })],
      ['a range past the end', ALL, (p) => ({ remoteAddress: p.b.base + (1n << 20n) - 8n })],
      ['a queue pair that does not allow it', Access.LOCAL_WRITE, () => ({})],
    ];
    for (const [what, access, change] of refused) {
      it(`a WRITE with ${what}: nothing is written, the connection goes on`, () => {
        const { pair, qpA, qpB } = connected({}, access);
        const before = pair.b.bytes.slice();
        postReceive(pair.b, qpB, area(0), 1);
        const imm = { opcode: WrOpcode.RDMA_WRITE_WITH_IMM };
        postSend(pair.a, qpA, { ...write(pair, 3 * MTU), ...change(pair), ...imm });
        pair.run(100);
        assert.deepEqual(pair.b.bytes, before);
        assert.deepEqual(drain(pair.b.receiveCq), []);
        assert.equal(pair.b.driver.device.counters.drops.refusedAccess, 1);
        postSend(pair.a, qpA, send(8));
        pair.run(100);
        assert.equal(drain(pair.b.receiveCq)[0]?.status, SUCCESS);
        assert.deepEqual(pair.b.events, []);
      });
    }
  });

  it('with a shared receive queue puts back what a lost message had taken', () => {
    const made = new HcaPair();
    const srq = made.b.createSrq();
    const qpA = made.a.createQp({ type: QpType.UC });
    const qpB = made.b.createQp({ type: QpType.UC, srq });
    connectUc(made, qpA, qpB);
    lose(made, 1);
    for (const slot of [3, 1]) postShared(made.b, srq, slot, area(slot * 4096));
    for (let i = 0; i < 3; i++) postSend(made.a, qpA, send(2 * MTU));
    made.run(100);
    assert.deepEqual(
      drain(made.b.receiveCq).map((c) => [c.wqeIndex, c.status, c.srqn]),
      [
        [3, SUCCESS, srq.srqn],
        [1, SUCCESS, srq.srqn],
      ],
    );
    assert.deepEqual(made.b.events, []);
  });

  it('fails a receive whose own memory is not to be written, and goes to ERR', () => {
    const { pair, qpA, qpB } = connected();
    postReceive(pair.b, qpB, [{ offset: 0, length: 64, lkey: 9 }], 1);
    postReceive(pair.b, qpB, area(0), 2);
    postSend(pair.a, qpA, send(8));
    pair.run(100);
    assert.deepEqual(
      drain(pair.b.receiveCq).map((c) => [c.cookie, c.status]),
      [
        [1, WcStatus.LOC_PROT_ERR],
        [2, WR_FLUSH_ERR],
      ],
    );
    assert.equal(qpB.state, QpState.ERR);
  });

  const bad: [string, Partial<SendRequest>, number][] = [
    ['READ', { opcode: WrOpcode.RDMA_READ }, WcStatus.LOC_QP_OP_ERR],
    ['atomic', { opcode: WrOpcode.ATOMIC_FETCH_AND_ADD }, WcStatus.LOC_QP_OP_ERR],
    ['SEND with invalidate', { opcode: WrOpcode.SEND_WITH_INV }, WcStatus.LOC_QP_OP_ERR],
    ['unknown opcode', { opcode: 40 }, WcStatus.LOC_QP_OP_ERR],
    ['lkey', { segments: [{ offset: 0, length: 8, lkey: 3 }] }, WcStatus.LOC_PROT_ERR],
    [
      'lkey of a later packet',
      { segments: [area(0, 2 * MTU)[0]!, { offset: 0, length: 8, lkey: 3 }] },
      WcStatus.LOC_PROT_ERR,
    ],
  ];
  for (const [what, request, status] of bad) {
    it(`stops (SQE) at a request with a bad ${what}, after what was before it`, () => {
      const { pair, qpA, qpB } = connected();
      for (let i = 0; i < 4; i++) postReceive(pair.b, qpB, area(i * 64, 64), i);
      postSend(pair.a, qpA, send(8, 1));
      postSend(pair.a, qpA, { ...send(8, 2), ...request });
      postSend(pair.a, qpA, send(8, 3));
      pair.run(100);
      assert.deepEqual(
        drain(pair.a.sendCq).map((c) => [c.cookie, c.status]),
        [
          [1, SUCCESS],
          [2, status],
          [3, WR_FLUSH_ERR],
        ],
      );
      assert.equal(qpA.state, QpState.SQE);
      // It still receives, and sends again after RTS.
      postReceive(pair.a, qpA, area(0x9000));
      postSend(pair.b, qpB, send(8));
      qpA.modify({ state: QpState.RTS });
      postSend(pair.a, qpA, send(8, 4));
      pair.run(100);
      assert.equal(drain(pair.a.receiveCq)[0]?.status, SUCCESS);
      assert.ok(drain(pair.b.receiveCq).every((c) => c.byteLength === 8 && c.status === SUCCESS));
    });
  }

  it('binds and invalidates windows in the order of its requests', () => {
    const { pair, qpA, qpB } = connected();
    const access = Access.LOCAL_WRITE | Access.MW_BIND;
    const region = pair.b.pd.registerMemory(pair.b.bytes, access, pair.b.base);
    const window = pair.b.driver.device.createMemoryWindow(pair.b.pd, 2);
    const rkey = nextRkey(window.rkey);
    const address = pair.b.base + 0x4000n;
    const bind = { window, rkey, region, address, length: 64, access: Access.REMOTE_WRITE };
    postSend(pair.b, qpB, { opcode: WrOpcode.BIND_MW, bind });
    pair.run(100);
    postSend(pair.a, qpA, { ...write(pair, 64), rkey });
    pair.run(100);
    assert.ok(copied(pair, 0x4000, 64));
    postSend(pair.b, qpB, { opcode: WrOpcode.LOCAL_INV, immediate: rkey });
    pair.run(100);
    assert.deepEqual(
      drain(pair.b.sendCq).map((c) => c.opcode),
      [WcOpcode.BIND_MW, WcOpcode.LOCAL_INV],
    );
    postSend(pair.a, qpA, { ...write(pair, 32), rkey });
    pair.run(100);
    assert.equal(pair.b.driver.device.counters.drops.refusedAccess, 1);
    postSend(pair.b, qpB, { opcode: WrOpcode.LOCAL_INV, immediate: rkey });
    pair.run(100);
    assert.equal(drain(pair.b.sendCq)[0]?.status, WcStatus.MW_BIND_ERR);
    assert.equal(qpB.state, QpState.SQE);
  });

  it('in SQD ends the message it has begun, tells, and begins the next in RTS', () => {
    const { pair, qpA, qpB } = connected();
    for (let i = 0; i < 2; i++) postReceive(pair.b, qpB, area(0));
    pair.a.port.sendCredit = 1;
    postSend(pair.a, qpA, send(3 * MTU));
    pair.settle();
    qpA.modify({ state: QpState.SQD, enableSqdAsyncNotify: true });
    assert.throws(() => qpA.modify({ state: QpState.RTS }), /still drain/);
    postSend(pair.a, qpA, send(8));
    pair.a.port.sendCredit = Infinity;
    pair.run(100);
    assert.deepEqual(pair.a.events, [AsyncEventType.SQ_DRAINED]);
    assert.equal(drain(pair.b.receiveCq).length, 1);
    qpA.modify({ state: QpState.RTS });
    pair.run(100);
    assert.equal(drain(pair.b.receiveCq).length, 1);
  });

  it('flushes in ERR, forgets in RESET, and works again', () => {
    const { pair, qpA, qpB } = connected();
    pair.a.port.sendCredit = 1;
    postReceive(pair.b, qpB, area(0), 1);
    postSend(pair.a, qpA, send(3 * MTU, 1));
    postSend(pair.a, qpA, send(8, 2));
    pair.settle();
    qpA.modify({ state: QpState.ERR });
    qpB.modify({ state: QpState.ERR });
    pair.a.port.sendCredit = Infinity;
    pair.run(100);
    assert.deepEqual(
      [...drain(pair.a.sendCq), ...drain(pair.b.receiveCq)].map((c) => c.status),
      [WR_FLUSH_ERR, WR_FLUSH_ERR, WR_FLUSH_ERR],
    );
    for (const qp of [qpA, qpB]) qp.modify({ state: QpState.RESET });
    connectUc(pair, qpA, qpB);
    postReceive(pair.b, qpB, area(0), 3);
    postSend(pair.a, qpA, send(8));
    pair.run(100);
    assert.equal(drain(pair.b.receiveCq)[0]?.cookie, 3);
    qpB.destroy();
    qpB.destroy();
    assert.ok(pair.a.driver.device.capabilities.has('uc'));
  });

  it('takes no packet from elsewhere, nor one of another transport', () => {
    const { pair, qpA, qpB } = connected();
    postReceive(pair.b, qpB, area(0));
    const sent: Uint8Array[] = [];
    pair.a.port.filter = (packet) => {
      sent.push(packet.slice());
      return [];
    };
    postSend(pair.a, qpA, send(8));
    pair.settle();
    const packet = sent[0]!;
    pair.b.port.inject(packet, true);
    const other = packet.slice();
    other[0] = 0x04;
    pair.b.port.inject(other);
    pair.run(100);
    const { drops } = pair.b.driver.device.counters;
    assert.deepEqual([drops.wrongSource, drops.wrongTransport], [1, 1]);
    assert.deepEqual(drain(pair.b.receiveCq), []);
    pair.b.port.inject(packet);
    pair.run(100);
    assert.equal(drain(pair.b.receiveCq).length, 1);
  });
});
