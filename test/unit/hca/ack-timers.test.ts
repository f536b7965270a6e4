import assert from 'node:assert/strict';
import { WcStatus, WrOpcode } from '../../../core/spi/index.js';
import { HcaPair, connect, drain, postReceive, postSend } from '../../support/hca-pair.js';

const FEW = { maxSendWr: 4, maxReceiveWr: 4, maxSendSge: 1, maxReceiveSge: 1 };
const send = { opcode: WrOpcode.SEND, segments: [{ offset: 0, length: 8 }] };

/** So many connections, with a message on each that has been answered. */
function answered(count: number): HcaPair {
  const pair = new HcaPair();
  for (let i = 0; i < count; i++) {
    const [qpA, qpB] = [pair.a.createQp(FEW), pair.b.createQp(FEW)];
    connect(pair, qpA, qpB);
    postReceive(pair.b, qpB, [{ offset: 64, length: 64 }]);
    postSend(pair.a, qpA, send);
  }
  pair.settle();
  const statuses = drain(pair.a.sendCq).map((completion) => completion.status);
  assert.deepEqual(statuses, new Array(count).fill(WcStatus.SUCCESS));
  return pair;
}

describe('ACK timers of connections that await nothing', () => {
  it('go on where there are few: they are wanted again soon', () => {
    const pair = answered(10);
    assert.equal(pair.a.driver.timers.size, 10);
    pair.run(1_000_000);
    assert.equal(pair.a.driver.timers.size, 0);
    assert.equal(pair.a.driver.device.counters.earlyRepeats, 0);
  });

  it('stop where there are many', () => {
    const pair = answered(300);
    assert.equal(pair.a.driver.timers.size, 64);
    pair.run(1_000_000);
    assert.equal(pair.a.driver.timers.size, 0);
    assert.equal(pair.a.driver.device.counters.timeouts, 0);
  });

  it('still expire, all of them, where answers are missing', () => {
    const pair = new HcaPair();
    const count = 200;
    let lost = 0;
    pair.a.port.filter = (packet) => (lost++ < count ? [] : [packet]);
    for (let i = 0; i < count; i++) {
      const [qpA, qpB] = [pair.a.createQp(FEW), pair.b.createQp(FEW)];
      connect(pair, qpA, qpB);
      postReceive(pair.b, qpB, [{ offset: 64, length: 64 }]);
      postSend(pair.a, qpA, send);
    }
    pair.run(1_000_000);
    assert.equal(drain(pair.a.sendCq).length, count);
    assert.equal(pair.a.driver.device.counters.timeouts, count);
  });
});
