/** MADs by the thousand, each of which costs time, and a connection that goes on beside them. */
import assert from 'node:assert/strict';
import {
  GSI_QKEY,
  MadMethod,
  QpState,
  QpType,
  WcStatus,
  WrOpcode,
  silentLogger,
} from '../../../core/spi/index.js';
import { emitMadHeader } from '../../../core/spi/modules/mad-header.js';
import { gsiPacket } from '../../../bench/flood/datagrams.js';
import { Mad } from '../../../plugins/mad/index.js';
import { SeededRandom } from '../../../providers/mock/index.js';
import { HcaPair, connect, drain, postReceive, postSend } from '../../support/hca-pair.js';

const CLASS = 0x0a;
/** What a MAD costs its agent. */
const MAD_US = 60;
const MADS = 5000;
const SEGMENTS = [{ offset: 0, length: 8 }];

/** A MAD that its agent takes. */
function packet(n: number): Uint8Array {
  const mad = new Uint8Array(256);
  const fixed = { baseVersion: 1, managementClass: CLASS, classVersion: 1, method: MadMethod.SEND };
  const rest = { status: 0, classSpecific: 0, attributeId: 0x20, attributeModifier: 0 };
  emitMadHeader({ ...fixed, ...rest, transactionIdHi: 1, transactionIdLo: n }, mad);
  return gsiPacket(mad, n);
}

describe('MAD: floods', () => {
  it('an established connection goes on without a retry', () => {
    const pair = new HcaPair();
    const { a, b, clock } = pair;
    const qpA = a.createQp();
    connect(pair, qpA, b.createQp(), { timeout: 10 });
    const { driver } = b;
    const services = { device: driver.device, timers: driver.timers, scheduler: driver };
    const random = new SeededRandom(1);
    const mad = new Mad({ ...services, clock, random, logger: silentLogger });
    let taken = 0;
    let sent = 0;
    let done = 0;
    const write = (): void => {
      const remote = { remoteAddress: b.base, rkey: b.region.rkey };
      postSend(a, qpA, { opcode: WrOpcode.RDMA_WRITE, segments: SEGMENTS, ...remote });
    };
    // The peer, and the flooder, go on while an agent is at work here.
    const onReceive = (): void => {
      taken++;
      clock.timeUs += MAD_US;
      for (let i = 0; i < 3 && sent < MADS; i++) b.port.inject(packet(sent++));
      a.driver.pump();
      for (const { status } of drain(a.sendCq)) {
        assert.equal(status, WcStatus.SUCCESS);
        done++;
        write();
      }
    };
    const methods = [MadMethod.SEND];
    mad.registerAgent({ managementClass: CLASS, classVersion: 1, methods, onReceive, onSend() {} });
    while (sent < 1000) b.port.inject(packet(sent++));
    write();
    pair.settle();
    const { timeouts, retries } = a.driver.device.counters;
    assert.deepEqual({ timeouts, retries }, { timeouts: 0, retries: 0 });
    assert.ok(done > 20, `${done} writes`);
    // What does not fit QP1's queue is lost, and counted.
    assert.ok(taken >= 512);
    assert.equal(taken + b.driver.device.counters.drops.gsiOverflow, MADS);
  });

  it('in a burst, data comes before what is for QP1', () => {
    const pair = new HcaPair();
    const { a, b } = pair;
    const [qpA, qpB] = [a.createQp(), b.createQp()];
    connect(pair, qpA, qpB);
    const gsi = b.createQp({ type: QpType.GSI });
    gsi.modify({ state: QpState.INIT, pkeyIndex: 0, qkey: GSI_QKEY });
    gsi.modify({ state: QpState.RTR });
    postReceive(b, gsi, [{ offset: 0, length: 512 }], 1);
    postReceive(b, qpB, SEGMENTS, 2);
    postSend(a, qpA, { opcode: WrOpcode.SEND, segments: SEGMENTS });
    b.port.inject(packet(1));
    a.driver.pump();
    b.port.inject(packet(2));
    pair.settle();
    assert.deepEqual(
      drain(b.receiveCq).map(({ cookie }) => cookie),
      [2, 1],
    );
    assert.equal(b.driver.device.counters.drops.gsiOverflow, 1);
  });
});
