import assert from 'node:assert/strict';
import { type QueuePair, WcStatus, WrOpcode } from '../../../core/spi/index.js';
import { HcaPair, connect, drain, postReceive, postSend } from '../../support/hca-pair.js';

const segment = { offset: 0, length: 8 };
const message = { opcode: WrOpcode.SEND, segments: [segment] };

describe('an ACK and the answer, between two of ours', () => {
  let pair: HcaPair;
  let qpA: QueuePair;
  let qpB: QueuePair;

  beforeEach(() => {
    pair = new HcaPair(5);
    qpA = pair.a.createQp();
    qpB = pair.b.createQp();
    connect(pair, qpA, qpB, { peer: { lateAcks: true } });
    for (let i = 0; i < 8; i++) {
      postReceive(pair.a, qpA, [segment]);
      postReceive(pair.b, qpB, [segment]);
    }
    postSend(pair.a, qpA, message);
    pair.a.driver.progress();
    while (drain(pair.b.receiveCq).length === 0) pair.b.driver.progress();
  });

  const sent = (): number => pair.b.driver.device.hca.tx.taken;
  const acks = (): number => pair.b.driver.device.hca.counters.acksSent;

  it('part: the answer goes at its doorbell, the ACK the next time', () => {
    const before = sent();
    postSend(pair.b, qpB, message);
    assert.deepEqual([sent() - before, acks()], [1, 0]);
    pair.b.driver.progress();
    assert.deepEqual([sent() - before, acks()], [2, 1]);
    pair.run(1000);
    assert.equal(drain(pair.a.sendCq)[0]?.status, WcStatus.SUCCESS);
  });

  it('are alone in that: what comes behind the answer waits for the rest of it', () => {
    const before = sent();
    for (let i = 0; i < 3; i++) postSend(pair.b, qpB, message);
    assert.deepEqual([sent() - before, acks()], [1, 0]);
    pair.b.driver.progress();
    assert.deepEqual([sent() - before, acks()], [4, 1]);
  });

  it('do not hurry when several messages have come', () => {
    for (let i = 0; i < 2; i++) postSend(pair.a, qpA, message);
    pair.a.driver.progress();
    while (drain(pair.b.receiveCq).length === 0) pair.b.driver.progress();
    const before = sent();
    postSend(pair.b, qpB, message);
    assert.equal(sent() - before, 0);
  });

  it('are told apart: the next request after an ACK is no answer', () => {
    const before = pair.a.driver.device.hca.tx.taken;
    pair.b.driver.progress();
    while (drain(pair.a.sendCq).length === 0) pair.a.driver.progress();
    postSend(pair.a, qpA, message);
    assert.equal(pair.a.driver.device.hca.tx.taken - before, 0);
  });

  it('does not wait a second time, though there is another answer', () => {
    const before = sent();
    postSend(pair.b, qpB, message);
    pair.b.driver.progress();
    postSend(pair.b, qpB, message);
    pair.b.driver.progress();
    assert.deepEqual([sent() - before, acks()], [3, 1]);
  });

  it('goes at once when nothing answers', () => {
    pair.b.driver.progress();
    assert.equal(acks(), 1);
  });

  it('have both left when the pump ends, which need not come back soon', () => {
    const before = sent();
    postSend(pair.b, qpB, message);
    pair.b.driver.pump();
    assert.deepEqual([sent() - before, acks()], [2, 1]);
  });

  it('follows in the pump when the loop ends', () => {
    postSend(pair.b, qpB, message);
    pair.b.driver.progress();
    const requests = pair.b.pumpRequests;
    assert.ok(requests > 0);
    pair.b.driver.pump();
    assert.equal(acks(), 1);
  });
});
