/** UC queue pairs: what is on the wire, and what arrives whole. */
import assert from 'node:assert/strict';
import {
  Access,
  QpState,
  QpType,
  WcFlags,
  WcOpcode,
  WcStatus,
  WrFlags,
  WrOpcode,
} from '../../../core/spi/index.js';
import {
  connectUc,
  drain,
  HcaPair,
  postReceive,
  postSend,
  postShared,
  type SendRequest,
} from '../../support/hca-pair.js';
import { ALL, MTU, area, connected, copied, lose, send, write } from '../../support/uc-pair.js';

const { SUCCESS } = WcStatus;

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
    pair.b.port.inject(packet, 0);
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
