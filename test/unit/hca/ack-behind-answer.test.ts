import assert from 'node:assert/strict';
import { WcStatus, WrOpcode } from '../../../core/spi/index.js';
import type { QueuePair } from '../../../core/spi/index.js';
import { HcaPair, connect, drain, postReceive, postSend } from '../../support/hca-pair.js';

const segment = { offset: 0, length: 8 };
const message = { opcode: WrOpcode.SEND, segments: [segment] };

describe('an ACK and the answer', () => {
  let pair: HcaPair;
  let qpB: QueuePair;

  beforeEach(() => {
    pair = new HcaPair(5);
    const qpA = pair.a.createQp();
    qpB = pair.b.createQp();
    connect(pair, qpA, qpB);
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

  it('part in a dequeue loop: the answer goes first, the ACK the next time', () => {
    const before = sent();
    postSend(pair.b, qpB, message);
    pair.b.driver.progress();
    assert.deepEqual([sent() - before, acks()], [1, 0]);
    pair.b.driver.progress();
    assert.deepEqual([sent() - before, acks()], [2, 1]);
    pair.run(1000);
    assert.equal(drain(pair.a.sendCq)[0]?.status, WcStatus.SUCCESS);
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

  it('leave together from the pump, which need not come back soon', () => {
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
