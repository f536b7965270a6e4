import assert from 'node:assert/strict';
import {
  AsyncEventType,
  CQE,
  QpState,
  type QueuePair,
  WcFlags,
  WrFlags,
  WrOpcode,
} from '../../../core/spi/index.js';
import type { SoftCompletionQueue } from '../../../providers/hca/completions/completion-queue.js';
import {
  connectedPair,
  drain,
  type HcaPair,
  postReceive,
  postSend,
} from '../../support/hca-pair.js';

const send = { opcode: WrOpcode.SEND, segments: [{ offset: 0, length: 8 }] };

describe('Completion queue', () => {
  const receiveOne = (pair: HcaPair, qpA: QueuePair, qpB: QueuePair, flags = 0): void => {
    postReceive(pair.b, qpB, [{ offset: 64, length: 64 }]);
    postSend(pair.a, qpA, { ...send, flags });
    pair.run(1000);
  };

  it('notifies once, for a completion added after the arm', () => {
    const { pair, qpA, qpB } = connectedPair(21);
    receiveOne(pair, qpA, qpB);
    pair.b.receiveCq.arm(false);
    pair.run(1000);
    assert.equal(pair.b.notified, 0, 'what was there does not count');
    receiveOne(pair, qpA, qpB);
    assert.equal(pair.b.notified, 1);
    receiveOne(pair, qpA, qpB);
    assert.equal(pair.b.notified, 1, 'one-shot');
    assert.equal(drain(pair.b.receiveCq).length, 3);
  });

  it('armed for solicited ones, waits for those and for errors; arming widens', () => {
    const { pair, qpA, qpB } = connectedPair(21);
    pair.b.receiveCq.arm(true);
    receiveOne(pair, qpA, qpB);
    assert.equal(pair.b.notified, 0);
    receiveOne(pair, qpA, qpB, WrFlags.SOLICITED);
    assert.equal(pair.b.notified, 1);
    assert.equal(drain(pair.b.receiveCq).at(-1)?.flags, WcFlags.SOLICITED);
    pair.b.receiveCq.arm(false);
    pair.b.receiveCq.arm(true);
    receiveOne(pair, qpA, qpB);
    assert.equal(pair.b.notified, 2);
    pair.b.receiveCq.arm(true);
    postReceive(pair.b, qpB, [{ offset: 64, length: 64 }]);
    qpB.modify({ state: QpState.ERR });
    assert.equal(pair.b.notified, 2, 'never from inside a call');
    pair.run(0);
    assert.equal(pair.b.notified, 3);
  });

  it('gives the source port of a datagram that is lost to none', () => {
    const { pair, qpA } = connectedPair(21, { cqEntries: 1 });
    const cq = pair.a.receiveCq as SoftCompletionQueue;
    for (const port of [4791, 4792]) {
      cq.push({ qpn: qpA.qpn, context: 0 }, 0, 0, new Uint32Array(2), 0, 8);
      cq.tellSourcePort(port);
    }
    assert.equal(cq.overruns, 1);
    assert.equal(cq.ring.words[cq.ring.wordOf(0) + CQE.SOURCE_PORT], 4791);
  });

  it('that overruns tells so and breaks its queue pairs', () => {
    const { pair, qpA, qpB } = connectedPair(21, { cqEntries: 4 });
    const other = pair.b.createQp();
    other.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: 0 });
    for (let i = 0; i < 5; i++) postReceive(pair.b, qpB, [{ offset: 64, length: 64 }], i);
    for (let i = 0; i < 5; i++) postSend(pair.a, qpA, { ...send, flags: 0 });
    pair.run(1000);
    assert.deepEqual(pair.b.cqEvents, [AsyncEventType.CQ_ERR]);
    assert.deepEqual([qpB.state, other.state], [QpState.ERR, QpState.ERR]);
    assert.deepEqual(
      drain(pair.b.receiveCq).map((c) => c.cookie),
      [0, 1, 2, 3],
    );
  });

  it('keeps unread completions in order when it is resized', () => {
    const { pair, qpA, qpB } = connectedPair(21, { cqEntries: 4 });
    for (let i = 0; i < 3; i++) postReceive(pair.b, qpB, [{ offset: 64, length: 64 }], i);
    for (let i = 0; i < 3; i++) postSend(pair.a, qpA, { ...send, flags: 0 });
    pair.run(1000);
    assert.throws(() => pair.b.receiveCq.resize(2), /3 unread/);
    pair.b.receiveCq.resize(64);
    for (let i = 3; i < 10; i++) postReceive(pair.b, qpB, [{ offset: 64, length: 64 }], i);
    for (let i = 3; i < 10; i++) postSend(pair.a, qpA, { ...send, flags: 0 });
    pair.run(1000);
    const cookies = drain(pair.b.receiveCq).map((c) => c.cookie);
    assert.deepEqual(cookies, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });
});
