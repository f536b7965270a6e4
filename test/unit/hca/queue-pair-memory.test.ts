import assert from 'node:assert/strict';
import { QpType, Slab, WcStatus, WrFlags, WrOpcode } from '../../../core/spi/index.js';
import type { QueuePair, QueuePairInit, Ring } from '../../../core/spi/index.js';
import {
  FEW_RESPONSES,
  QueuePairMemory,
  REQUEST_ROW,
  RESPONSE_ROW,
  TIME,
} from '../../../providers/hca/queue-pair/queue-pair-memory.js';
import { HcaPair, connect, drain, postReceive, postSend } from '../../support/hca-pair.js';

const FEW = { maxSendWr: 4, maxReceiveWr: 2, maxSendSge: 1, maxReceiveSge: 1, maxInlineBytes: 64 };

const init = (values: Partial<QueuePairInit>): QueuePairInit =>
  ({ type: QpType.RC, ...FEW, ...values }) as QueuePairInit;

/** Words that a ring's entries take. */
function entriesOf(ring: Ring): [number, number] {
  return [ring.wordOf(0), ring.wordOf(0) + ring.entries * ring.strideWords];
}

const send = { opcode: WrOpcode.SEND, segments: [{ offset: 0, length: 8 }] };

describe('Queue pair memory', () => {
  it('has its parts side by side, each in a place of its own', () => {
    for (const maxSendWr of [1, 5, 64]) {
      for (const connected of [true, false]) {
        for (const receives of [true, false]) {
          const given = init({ maxSendWr, maxReceiveWr: 7 });
          const memory = new QueuePairMemory(new Slab(), given, { connected, receives });
          const { sendRing, receiveRing, firstTime, firstResponse, firstRequest } = memory;
          const parts: [number, number][] = [
            [memory.firstWord, memory.firstWord + 4],
            entriesOf(sendRing),
          ];
          if (receiveRing) parts.push(entriesOf(receiveRing));
          if (connected) {
            const times = Math.max(...Object.values(TIME)) + 1;
            const rows = FEW_RESPONSES * RESPONSE_ROW.WORDS;
            const requests = sendRing.entries * REQUEST_ROW.WORDS;
            parts.push([firstTime * 2, (firstTime + times) * 2]);
            parts.push([firstResponse, firstResponse + rows]);
            parts.push([firstRequest, firstRequest + requests]);
          }
          parts.sort(([a], [b]) => a - b);
          for (const [i, [start]] of parts.entries()) {
            if (i > 0) assert.ok(start >= parts[i - 1]![1], 'parts overlap');
          }
          assert.ok(parts.at(-1)![1] <= memory.words.length);
          assert.equal(sendRing.byteOf(0) % 64, 0);
          assert.equal(receiveRing !== undefined, receives);
          for (const ring of receiveRing ? [sendRing, receiveRing] : [sendRing]) {
            ring.producer = 3;
            ring.consumer = 2;
            assert.equal(ring.length, 1);
          }
          memory.free();
        }
      }
    }
  });

  it('is given back once, when the queue pair goes, and is another one’s then', () => {
    const pair = new HcaPair();
    const { slab } = pair.a.driver.device.hca;
    const first = pair.a.createQp(FEW);
    const used = slab.usedBytes;
    assert.ok(used > 0);
    for (let i = 0; i < 100; i++) {
      const qp = pair.a.createQp(FEW);
      assert.equal(slab.usedBytes, 2 * used);
      qp.destroy();
      qp.destroy();
      assert.equal(slab.usedBytes, used);
    }
    first.destroy();
    assert.equal(slab.usedBytes, 0);
  });

  it('shows a new queue pair nothing of the one before', () => {
    const { pair, qpA, qpB } = small();
    transfer(pair, qpA, qpB);
    const old = qpA.sendRing.wordOf(0);
    qpA.destroy();
    const next = pair.a.createQp(FEW);
    assert.equal(next.sendRing.wordOf(0), old, 'the same place');
    assert.deepEqual([next.sendRing.producer, next.sendRing.consumer], [0, 0]);
    const [from, to] = entriesOf(next.sendRing);
    assert.ok(next.sendRing.words.subarray(from, to).every((word) => word === 0));
    const peer = pair.b.createQp(FEW);
    connect(pair, next, peer);
    transfer(pair, next, peer);
  });

  it('is out of reach for who still has the queue pair', () => {
    const { pair, qpA } = small();
    const stale = qpA.sendRing;
    const staleReceives = qpA.receiveRing!;
    qpA.destroy();
    const next = pair.a.createQp(FEW);
    const peer = pair.b.createQp(FEW);
    connect(pair, next, peer);
    for (let i = 0; i < 4; i++) {
      postSend(pair.a, qpA, send);
      postReceive(pair.a, qpA, [{ offset: 0, length: 8 }]);
    }
    assert.deepEqual([stale.length, staleReceives.length], [0, 0]);
    assert.deepEqual([next.sendRing.length, next.receiveRing!.length], [0, 0]);
    assert.throws(() => qpA.modify({ state: 0 }), { code: 'EINVAL' });
    assert.ok(Array.isArray(qpA.flightRecord()));
    transfer(pair, next, peer);
  });

  it('waits for the inline payload of packets that the port has not taken', () => {
    const { pair, qpA, qpB } = small();
    const { slab } = pair.a.driver.device.hca;
    postReceive(pair.b, qpB, [{ offset: 64, length: 64 }]);
    const used = slab.usedBytes;
    pair.a.port.sendCredit = 0;
    const inline = Uint8Array.from({ length: 40 }, (_, i) => i + 1);
    postSend(pair.a, qpA, { opcode: WrOpcode.SEND, inline });
    pair.a.driver.pump();
    qpA.destroy();
    assert.equal(slab.usedBytes, used, 'still needed');
    const next = pair.a.createQp(FEW);
    postSend(pair.a, next, { opcode: WrOpcode.SEND, inline: new Uint8Array(40).fill(0xee) }, false);
    pair.a.port.sendCredit = Infinity;
    pair.settle();
    assert.deepEqual(pair.b.bytes.subarray(64, 104), inline);
    assert.equal(slab.usedBytes, used);
    next.destroy();
    assert.equal(slab.usedBytes, 0);
  });

  it('keeps apart what thousands do at a time', () => {
    const pair = new HcaPair();
    const qps = Array.from({ length: 1500 }, () => {
      const [qpA, qpB] = [pair.a.createQp(FEW), pair.b.createQp(FEW)] as const;
      connect(pair, qpA, qpB);
      return { qpA, qpB };
    });
    for (const [i, { qpA, qpB }] of qps.entries()) {
      if (i % 3 === 0) continue;
      postReceive(pair.b, qpB, [{ offset: 64 * i, length: 64 }], i);
      pair.a.bytes.fill(i & 0xff, 64 * i, 64 * i + 64);
      const segments = [{ offset: 64 * i, length: 64 }];
      postSend(pair.a, qpA, { opcode: WrOpcode.SEND, segments, cookie: i });
    }
    for (const [i, { qpA, qpB }] of qps.entries()) {
      if (i % 3 !== 0) continue;
      qpA.destroy();
      qpB.destroy();
    }
    const rest = qps.map((_, i) => i).filter((i) => i % 3 !== 0);
    const sent: number[] = [];
    const received: number[] = [];
    for (let turn = 0; turn < 50; turn++) {
      pair.run(100);
      for (const { status, cookie } of drain(pair.a.sendCq)) {
        assert.equal(status, WcStatus.SUCCESS);
        sent.push(cookie);
      }
      for (const { status, cookie } of drain(pair.b.receiveCq)) {
        assert.equal(status, WcStatus.SUCCESS);
        received.push(cookie);
      }
    }
    assert.deepEqual(
      [sent, received].map((list) => list.sort((a, b) => a - b)),
      [rest, rest],
    );
    for (const i of rest) {
      assert.ok(pair.b.bytes.subarray(64 * i, 64 * i + 64).every((byte) => byte === (i & 0xff)));
    }
  });
});

function small(): { pair: HcaPair; qpA: QueuePair; qpB: QueuePair } {
  const pair = new HcaPair();
  const [qpA, qpB] = [pair.a.createQp(FEW), pair.b.createQp(FEW)];
  connect(pair, qpA, qpB);
  return { pair, qpA, qpB };
}

/** Five messages, one after the other: round both rings. */
function transfer(pair: HcaPair, qpA: QueuePair, qpB: QueuePair): void {
  for (let i = 1; i <= 5; i++) {
    postReceive(pair.b, qpB, [{ offset: 512, length: 64 }], i);
    pair.a.bytes.fill(i, 0, 8);
    postSend(pair.a, qpA, { ...send, flags: WrFlags.SIGNALED, cookie: i });
    pair.run(1000);
    assert.deepEqual(
      [...drain(pair.a.sendCq), ...drain(pair.b.receiveCq)].map((c) => [c.status, c.cookie]),
      [
        [WcStatus.SUCCESS, i],
        [WcStatus.SUCCESS, i],
      ],
    );
    assert.ok(pair.b.bytes.subarray(512, 520).every((byte) => byte === i));
  }
}
