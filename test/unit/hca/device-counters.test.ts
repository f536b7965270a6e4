import assert from 'node:assert/strict';
import { WrOpcode } from '../../../core/spi/index.js';
import { HcaPair, connect, postReceive, postSend } from '../../support/hca-pair.js';

describe("counters of the HCA's device", () => {
  const SEGMENT = { offset: 0, length: 8 };

  it('tell a message, a receiver that was not ready, and packets for nobody', () => {
    const pair = new HcaPair();
    const { a, b } = pair;
    const [qpA, qpB] = [a.createQp(), b.createQp()];
    connect(pair, qpA, qpB);
    const before = b.driver.device.readCounters();
    assert.ok(Object.values(before).every((count) => count === 0));
    postSend(a, qpA, { opcode: WrOpcode.SEND, segments: [SEGMENT] });
    pair.settle();
    postReceive(b, qpB, [SEGMENT]);
    pair.run(100_000);
    qpB.destroy();
    postSend(a, qpA, { opcode: WrOpcode.SEND, segments: [SEGMENT] });
    pair.run(1000);
    const { rnrNaksSent, dropNoReceive, receivedPackets, completions, dropUnknownQpn } =
      b.driver.device.readCounters();
    assert.deepEqual([rnrNaksSent, dropNoReceive, completions], [1, 1, 1]);
    assert.ok(receivedPackets! >= 3 && dropUnknownQpn! >= 1);
    assert.equal(a.driver.device.readCounters().rnrNaksReceived, 1);
  });
});
