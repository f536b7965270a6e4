import assert from 'node:assert/strict';
import {
  QpState,
  QpType,
  type QueuePair,
  WcFlags,
  WcOpcode,
  WcStatus,
  WrOpcode,
} from '../../../core/spi/index.js';
import { HcaPair, drain, postReceive, postSend } from '../../support/hca-pair.js';

const send = { opcode: WrOpcode.SEND, segments: [{ offset: 0, length: 8 }] };

describe('UD queue pair', () => {
  function ready(pair: HcaPair, type: QpType, qkey: number): [QueuePair, QueuePair] {
    const qps = [pair.a, pair.b].map((side) => {
      const qp = side.createQp({ type });
      const port = type === QpType.GSI ? {} : { portNumber: 1 };
      qp.modify({ state: QpState.INIT, pkeyIndex: 0, qkey, ...port });
      qp.modify({ state: QpState.RTR });
      qp.modify({ state: QpState.RTS, sendPsn: 1 });
      return qp;
    });
    return qps as [QueuePair, QueuePair];
  }

  for (const [name, type, qkey] of [
    ['UD', QpType.UD, 0x1234],
    ['GSI', QpType.GSI, 0x80010000],
  ] as const) {
    it(`${name} delivers behind a GRH area, if the Q_Key is right`, () => {
      const pair = new HcaPair();
      const [qpA, qpB] = ready(pair, type, qkey);
      const ah = pair.a.driver.device.createAddressHandle(pair.a.pd, {
        gid: pair.b.port.gids[0]!,
        localGidIndex: 0,
      });
      pair.a.bytes.fill(0x5a, 0, 256);
      postReceive(
        pair.b,
        qpB,
        [
          { offset: 1000, length: 20 },
          { offset: 1020, length: 500 },
        ],
        3,
      );
      const datagram = { addressHandle: ah.handle, remoteQpn: qpB.qpn, remoteQkey: qkey };
      const segments = [{ offset: 0, length: 256 }];
      const imm = { opcode: WrOpcode.SEND_WITH_IMM, immediate: 6, segments };
      if (type === QpType.UD) postSend(pair.a, qpA, { ...imm, ...datagram, remoteQkey: 1 });
      postSend(pair.a, qpA, { ...imm, ...datagram });
      postSend(pair.a, qpA, { ...imm, ...datagram });
      pair.run(1000);
      assert.equal(
        drain(pair.a.sendCq).every((c) => c.status === 0),
        true,
      );
      const [received, ...more] = drain(pair.b.receiveCq);
      assert.deepEqual(more, []);
      assert.equal(received?.status, WcStatus.SUCCESS);
      assert.equal(received?.opcode, WcOpcode.RECV);
      assert.equal(received?.byteLength, 296);
      assert.equal(received?.flags, WcFlags.GRH | WcFlags.WITH_IMM);
      assert.equal(received?.sourceQpn, qpA.qpn);
      assert.equal(received?.immediate, 6);
      const grh = pair.b.bytes.subarray(1000, 1040);
      assert.deepEqual([...grh.subarray(32)], [10, 0, 0, 1, 10, 0, 0, 2]);
      assert.equal(grh[20], 0x45);
      assert.equal(
        grh.subarray(20).reduce((sum, byte, i) => sum + (i % 2 ? byte : byte << 8), 0) % 0xffff,
        0,
      );
      assert.equal(pair.b.bytes.subarray(1040, 1297).indexOf(0), 256);
      const { drops } = pair.b.driver.device.counters;
      assert.equal(drops.badQkey, type === QpType.UD ? 1 : 0);
      assert.equal(type === QpType.GSI ? drops.gsiOverflow : drops.noReceive, 1);
      assert.equal(drops.gsiOverflow + drops.noReceive, 1);
    });
  }

  it('keeps the receive when a datagram does not fit, and stops at a bad request', () => {
    const pair = new HcaPair();
    const [qpA, qpB] = ready(pair, QpType.UD, 7);
    const { gids } = pair.b.port;
    const ah = pair.a.driver.device.createAddressHandle(pair.a.pd, {
      gid: gids[0]!,
      localGidIndex: 0,
    });
    const to = { addressHandle: ah.handle, remoteQpn: qpB.qpn, remoteQkey: 7 };
    postReceive(pair.b, qpB, [{ offset: 1000, length: 100 }], 3);
    postSend(pair.a, qpA, { ...send, ...to, segments: [{ offset: 0, length: 61 }] });
    postSend(pair.a, qpA, { ...send, ...to, segments: [{ offset: 0, length: 60 }] });
    pair.run(1000);
    assert.deepEqual(
      drain(pair.b.receiveCq).map((c) => [c.cookie, c.byteLength]),
      [[3, 100]],
    );
    assert.equal(pair.b.driver.device.counters.drops.bufferTooSmall, 1);
    postSend(pair.a, qpA, { ...send, ...to, segments: [{ offset: 0, length: 5000 }], cookie: 8 });
    postSend(pair.a, qpA, { ...send, ...to, cookie: 9 });
    pair.run(1000);
    assert.deepEqual(
      drain(pair.a.sendCq).map((c) => c.status),
      [WcStatus.SUCCESS, WcStatus.SUCCESS, WcStatus.LOC_LEN_ERR, WcStatus.WR_FLUSH_ERR],
    );
    assert.equal(qpA.state, QpState.SQE);
    qpA.modify({ state: QpState.RTS });
    postSend(pair.a, qpA, { ...send, ...to });
    pair.run(1000);
    assert.deepEqual(
      drain(pair.a.sendCq).map((c) => c.status),
      [WcStatus.SUCCESS],
    );
  });

  it('completes a send only when the port has taken its packet', () => {
    const pair = new HcaPair();
    const [qpA, qpB] = ready(pair, QpType.UD, 7);
    const { gids } = pair.b.port;
    const ah = pair.a.driver.device.createAddressHandle(pair.a.pd, {
      gid: gids[0]!,
      localGidIndex: 0,
    });
    pair.a.port.sendCredit = 0;
    postSend(pair.a, qpA, { ...send, addressHandle: ah.handle, remoteQpn: qpB.qpn, remoteQkey: 7 });
    pair.run(1000);
    assert.deepEqual(drain(pair.a.sendCq), []);
    pair.a.region.destroy();
    pair.a.port.sendCredit = Infinity;
    pair.run(1000);
    assert.deepEqual(
      drain(pair.a.sendCq).map((c) => c.status),
      [WcStatus.SUCCESS],
    );
  });
});
