import assert from 'node:assert/strict';
import { AsyncEventType, QpState, WcStatus, WrOpcode } from '../../../core/spi/index.js';
import { connectedPair } from './verbs.js';

describe('mock node', () => {
  it('moves messages', async () => {
    const { fabric, a, b } = connectedPair();
    a.bytes.fill(7, 0, 3000);
    b.postReceive(4000);
    a.postSend(3000);
    await fabric.run({ untilIdle: true });
    assert.deepEqual([a.statuses(), b.statuses()], [[WcStatus.SUCCESS], [WcStatus.SUCCESS]]);
    assert.deepEqual(b.bytes.subarray(0, 3001), new Uint8Array(3001).fill(7, 0, 3000));
  });

  it('fails the n-th send with the status asked for, and flushes what follows', async () => {
    const { fabric, a, b } = connectedPair();
    const status = WcStatus.REM_OP_ERR;
    const action = { type: 'fail', status } as const;
    const { sendFaults } = a.node;
    const second = { opcode: WrOpcode.SEND, qpn: a.qp.qpn, nth: 2 };
    const fault = sendFaults.add({ match: second, action });
    sendFaults.add({ match: { opcode: WrOpcode.RDMA_READ }, action });
    sendFaults.add({ match: { qpn: a.qp.qpn + 1 }, action });
    for (let i = 0; i < 3; i++) b.postReceive(64);
    for (let i = 0; i < 3; i++) a.postSend(10);
    await fabric.run({ untilIdle: true });
    assert.deepEqual(a.statuses(), [WcStatus.SUCCESS, status, WcStatus.WR_FLUSH_ERR]);
    assert.deepEqual(b.statuses(), [WcStatus.SUCCESS]);
    assert.equal(a.qp.state, QpState.ERR);
    assert.deepEqual([fault.matched, fault.hits], [2, 1]);
    assert.throws(() => fabric.assertFaultsHit(), /: sends of 10\.0\.0\.1: fail of opcode 4 \(0 m/);
  });

  it('goes on after a spinning consumer has taken in a "receiver not ready"', async () => {
    const { fabric, a, b } = connectedPair({}, 0);
    let refused = false;
    fabric.tap = (event, packet) => {
      if (event === 'delivered' && packet.flow.to === '10.0.0.1') refused = true;
    };
    a.postSend(10);
    while (!refused) assert.ok(fabric.step());
    assert.equal(a.node.device.progress(), true);
    b.postReceive(64);
    await fabric.run({ untilIdle: true });
    assert.deepEqual([a.statuses(), b.statuses()], [[WcStatus.SUCCESS], [WcStatus.SUCCESS]]);
  });

  it('is removed: what is under way is flushed, and the peer runs out of retries', async () => {
    const { fabric, a, b } = connectedPair();
    const events: AsyncEventType[] = [];
    a.node.device.setEventHandler((event) => events.push(event));
    b.postReceive(64);
    b.postSend(10);
    a.postSend(10);
    a.node.remove();
    a.node.remove();
    await fabric.run({ untilIdle: true });
    assert.deepEqual(events, [AsyncEventType.DEVICE_FATAL]);
    assert.deepEqual(a.statuses(), [WcStatus.WR_FLUSH_ERR]);
    assert.deepEqual(b.statuses(), [WcStatus.RETRY_EXC_ERR, WcStatus.WR_FLUSH_ERR]);
    await a.node.close();
    await b.node.close();
    assert.equal(fabric.pool.inUse, 0);
    assert.equal(fabric.clock.pending, 0);
  });
});
