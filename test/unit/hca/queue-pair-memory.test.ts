import assert from 'node:assert/strict';
import {
  QpType,
  type QueuePair,
  type QueuePairInit,
  type Ring,
  WcStatus,
  WrFlags,
  WrOpcode,
} from '../../../core/spi/index.js';
import { Slab } from '../../../core/spi/internal/index.js';
import {
  ATTRIBUTES,
  ConnectionMemory,
  FEW_RESPONSES,
  QueuePairMemory,
  RESPONSES_AT,
  RESPONSE_ROW,
  TIME,
} from '../../../providers/hca/queue-pair/queue-pair-memory.js';
import { HcaPair, connect, drain, postReceive, postSend } from '../../support/hca-pair.js';

const FEW = { maxSendWr: 4, maxReceiveWr: 2, maxSendSge: 1, maxReceiveSge: 1, maxInlineBytes: 64 };

const init = (values: Partial<QueuePairInit>): QueuePairInit =>
  ({ type: QpType.RC, ...FEW, ...values }) as QueuePairInit;

interface Place {
  set(value: number): void;
  get(): number;
}

/** Everything that a memory may be told: attributes, ring indices and entries, times, requests. */
function placesOf(memory: ConnectionMemory, connected: boolean): Place[] {
  const fields: Record<string, unknown> = memory as never;
  const ofField = (name: string): Place => ({
    set: (value) => (fields[name] = value),
    get: () => fields[name] as number,
  });
  const ofWord = (at: number): Place => ({
    set: (value) => (memory.words[at] = value),
    get: () => memory.words[at]!,
  });
  const attributes = Object.keys(ATTRIBUTES).filter((name) => name !== 'enableSqdAsyncNotify');
  const places = attributes.map(ofField);
  for (const ring of [memory.sendRing, memory.receiveRing]) {
    if (!ring) continue;
    places.push({ set: (value) => (ring.producer = value), get: () => ring.producer });
    places.push({ set: (value) => (ring.consumer = value), get: () => ring.consumer });
    const [from, to] = entriesOf(ring);
    for (let at = from; at < to; at++) places.push(ofWord(at));
  }
  if (!connected) return places;
  places.push(...Object.keys(TIME).map(ofField));
  const responses = memory.firstWord + RESPONSES_AT;
  for (let i = 0; i < FEW_RESPONSES * RESPONSE_ROW.end; i++) places.push(ofWord(responses + i));
  for (let slot = 0; slot < memory.sendRing.entries; slot++) {
    places.push(
      { set: (value) => memory.setFirstPsn(slot, value), get: () => memory.firstPsn(slot) },
      { set: (value) => memory.setPackets(slot, value), get: () => memory.packets(slot) },
      { set: (value) => memory.setLengthBytes(slot, value), get: () => memory.lengthBytes(slot) },
      { set: (value) => memory.setLocal(slot, value), get: () => memory.local(slot) },
    );
  }
  return places;
}

/** Words that a ring's entries take. */
function entriesOf(ring: Ring): [number, number] {
  return [ring.wordOf(0), ring.wordOf(0) + ring.entries * ring.strideWords];
}

const send = { opcode: WrOpcode.SEND, segments: [{ offset: 0, length: 8 }] };

describe('Queue pair memory', () => {
  it('keeps all that it is given, each in a place of its own', () => {
    for (const maxSendWr of [1, 5, 64]) {
      for (const connected of [true, false]) {
        for (const receives of [true, false]) {
          const given = init({ maxSendWr, maxReceiveWr: 7 });
          const slab = new Slab();
          const memory = new ConnectionMemory(slab, given, { connected, receives });
          const { sendRing, receiveRing } = memory;
          assert.equal(sendRing.byteOf(0) % 64, 0);
          assert.equal(receiveRing !== undefined, receives);
          const places = placesOf(memory, connected);
          for (const [i, place] of places.entries()) place.set(i + 1);
          assert.deepEqual(
            places.map((place) => place.get()),
            places.map((_, i) => i + 1),
          );
          const last = memory.firstWord + slab.usedBytes / 4;
          assert.ok(memory.words.subarray(last).every((word) => word === 0));
          memory.free();
        }
      }
    }
  });

  it('begins with times that have not been, and deadlines that never come', () => {
    const memory = new ConnectionMemory(new Slab(), init({}), { connected: true, receives: true });
    const { roundAtUs, shortestUs, smoothedUs, ackDeadlineUs } = memory;
    assert.deepEqual(
      [roundAtUs, shortestUs, smoothedUs, ackDeadlineUs],
      [-Infinity, Infinity, 0, Infinity],
    );
  });

  it('takes 896 bytes for a small connection, 640 for datagrams without receives', () => {
    const bytes = (parts: { connected: boolean; receives: boolean }): number => {
      const slab = new Slab();
      new QueuePairMemory(slab, init({}), parts);
      return slab.usedBytes;
    };
    assert.deepEqual(
      [bytes({ connected: true, receives: true }), bytes({ connected: false, receives: false })],
      [896, 640],
    );
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
