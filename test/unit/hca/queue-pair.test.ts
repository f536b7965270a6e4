import assert from 'node:assert/strict';
import {
  AsyncEventType,
  QpState,
  QpType,
  Timer,
  WcFlags,
  WcOpcode,
  WcStatus,
  WrFlags,
  WrOpcode,
} from '../../../core/spi/index.js';
import type { QueuePair } from '../../../core/spi/index.js';
import { HcaPair, connect, drain, postReceive, postSend } from '../../support/hca-pair.js';
import type { SideOptions } from '../../support/hca-pair.js';

const send = { opcode: WrOpcode.SEND, segments: [{ offset: 0, length: 8 }] };

function connected(options: SideOptions = {}): { pair: HcaPair; qpA: QueuePair; qpB: QueuePair } {
  const pair = new HcaPair(21, options);
  const qpA = pair.a.createQp();
  const qpB = pair.b.createQp();
  connect(pair, qpA, qpB);
  return { pair, qpA, qpB };
}

describe('Completion queue', () => {
  const receiveOne = (pair: HcaPair, qpA: QueuePair, qpB: QueuePair, flags = 0): void => {
    postReceive(pair.b, qpB, [{ offset: 64, length: 64 }]);
    postSend(pair.a, qpA, { ...send, flags });
    pair.run(1000);
  };

  it('notifies once, for a completion added after the arm', () => {
    const { pair, qpA, qpB } = connected();
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
    const { pair, qpA, qpB } = connected();
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

  it('that overruns tells so and breaks its queue pairs', () => {
    const { pair, qpA, qpB } = connected({ cqEntries: 4 });
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
    const { pair, qpA, qpB } = connected({ cqEntries: 4 });
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

describe('Queue pair', () => {
  it('tells once that the peer has spoken, in RTR', () => {
    const pair = new HcaPair();
    const qpA = pair.a.createQp();
    const qpB = pair.b.createQp();
    connect(pair, qpA, qpB);
    qpB.modify({ state: QpState.RESET });
    const gid = pair.a.port.gids[0]!;
    qpB.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: 0 });
    postReceive(pair.b, qpB, [{ offset: 64, length: 64 }]);
    postReceive(pair.b, qpB, [{ offset: 64, length: 64 }]);
    qpB.modify({
      state: QpState.RTR,
      addressVector: { gid, localGidIndex: 0 },
      pathMtuBytes: 1024,
      destinationQpn: qpA.qpn,
      receivePsn: 0xfffffa,
      maxDestRdAtomic: 1,
      minRnrTimer: 1,
    });
    postSend(pair.a, qpA, send);
    postSend(pair.a, qpA, send);
    pair.run(1000);
    assert.deepEqual(pair.b.events, [AsyncEventType.COMM_EST]);
    assert.equal(drain(pair.a.sendCq).length, 2, 'RTR answers');
  });

  it('in RESET forgets what was posted', () => {
    const { pair, qpA } = connected();
    postReceive(pair.a, qpA, [{ offset: 64, length: 64 }]);
    postSend(pair.a, qpA, send, false);
    qpA.modify({ state: QpState.RESET });
    pair.run(1000);
    assert.deepEqual([...drain(pair.a.sendCq), ...drain(pair.a.receiveCq)], []);
    assert.equal(qpA.sendRing.length, 0);
    assert.deepEqual(qpA.query(), { state: QpState.RESET, currentState: QpState.RESET });
  });

  it('works again after RESET', () => {
    const { pair, qpA, qpB } = connected();
    for (let i = 0; i < 3; i++) {
      postReceive(pair.b, qpB, [{ offset: 64, length: 64 }]);
      postSend(pair.a, qpA, send);
      pair.run(1000);
      assert.equal(drain(pair.a.sendCq)[0]?.status, WcStatus.SUCCESS);
      qpA.modify({ state: QpState.ERR });
      qpA.modify({ state: QpState.RESET });
      qpB.modify({ state: QpState.RESET });
      connect(pair, qpA, qpB);
    }
  });

  it('in SQD finishes what it began, tells, and goes on in RTS', () => {
    const { pair, qpA, qpB } = connected();
    for (let i = 0; i < 2; i++) postReceive(pair.b, qpB, [{ offset: 64, length: 64 }]);
    postSend(pair.a, qpA, send);
    pair.a.driver.progress();
    qpA.modify({ state: QpState.SQD, enableSqdAsyncNotify: true });
    assert.throws(() => qpA.modify({ state: QpState.RTS }), /still drain/);
    postSend(pair.a, qpA, send);
    pair.run(1000);
    assert.deepEqual(pair.a.events, [AsyncEventType.SQ_DRAINED]);
    assert.equal(drain(pair.a.sendCq).length, 1);
    qpA.modify({ state: QpState.RTS });
    pair.run(1000);
    assert.equal(drain(pair.a.sendCq).length, 1);
  });

  it('sends in RTS what the doorbell showed before', () => {
    const pair = new HcaPair();
    const qpA = pair.a.createQp();
    const qpB = pair.b.createQp();
    postSend(pair.a, qpA, send);
    postReceive(pair.b, qpB, [{ offset: 64, length: 64 }]);
    connect(pair, qpA, qpB);
    pair.run(1000);
    assert.equal(drain(pair.b.receiveCq).length, 1);
  });

  it('waits at a fence for the READ before it', () => {
    const { pair, qpA } = connected();
    const remote = { remoteAddress: pair.b.base, rkey: pair.b.region.rkey };
    const lost: number[] = [];
    pair.a.port.filter = (packet) => {
      lost.push(packet[0]!);
      return [packet];
    };
    pair.b.port.filter = () => [];
    postSend(pair.a, qpA, {
      opcode: WrOpcode.RDMA_READ,
      segments: [{ offset: 0, length: 8 }],
      ...remote,
    });
    const flags = WrFlags.FENCE | WrFlags.SIGNALED;
    const write = { opcode: WrOpcode.RDMA_WRITE, segments: [{ offset: 0, length: 8 }], ...remote };
    postSend(pair.a, qpA, { ...write, flags });
    pair.run(500);
    assert.deepEqual(lost, [0x0c]);
    pair.b.port.filter = undefined;
    pair.run(10_000);
    assert.deepEqual(
      drain(pair.a.sendCq).map((c) => c.status),
      [0, 0],
    );
  });

  it('carries inline payload and keeps it for retransmission', () => {
    const { pair, qpA, qpB } = connected();
    postReceive(pair.b, qpB, [{ offset: 64, length: 256 }]);
    let lost = 0;
    pair.a.port.filter = (packet) => (lost++ === 0 ? [] : [packet]);
    const inline = Uint8Array.from({ length: 201 }, (_, i) => i);
    postSend(pair.a, qpA, { opcode: WrOpcode.SEND_WITH_IMM, inline, immediate: 5 });
    pair.run(10_000);
    assert.deepEqual(pair.b.bytes.subarray(64, 265), inline);
    assert.equal(drain(pair.b.receiveCq)[0]?.immediate, 5);
  });

  it('refuses a value out of range with its name', () => {
    const { qpA } = connected();
    qpA.modify({ state: QpState.RESET });
    const init = { state: QpState.INIT, portNumber: 1, accessFlags: 0 } as const;
    assert.throws(() => qpA.modify({ ...init, pkeyIndex: 1 }), /pkeyIndex 1: 0 to 0/);
    assert.throws(() => qpA.modify({ ...init, pkeyIndex: 0, accessFlags: 0x100 }), /0x100/);
    assert.equal(qpA.state, QpState.RESET);
  });

  it('parents go after their children', async () => {
    const { pair, qpA } = connected();
    assert.throws(() => pair.a.pd.destroy(), { code: 'EBUSY' });
    assert.throws(() => pair.a.sendCq.destroy(), { code: 'EBUSY' });
    qpA.destroy();
    pair.a.region.destroy();
    pair.a.sendCq.destroy();
    pair.a.pd.destroy();
    await pair.a.driver.device.close();
    await pair.b.driver.device.close();
    assert.throws(() => pair.b.driver.device.createProtectionDomain(), { code: 'ENODEV' });
  });

  it('numbers are not used again soon', () => {
    const pair = new HcaPair();
    const seen = new Set<number>();
    for (let i = 0; i < 5000; i++) {
      const qp = pair.a.createQp({ maxSendWr: 1, maxReceiveWr: 1 });
      assert.ok(qp.qpn >= 16 && qp.qpn < 0xffffff && !seen.has(qp.qpn));
      seen.add(qp.qpn);
      qp.destroy();
    }
  });

  it('one that throws in its handler stops nothing', () => {
    const pair = new HcaPair();
    const told: string[] = [];
    pair.a.driver.defer(() => {
      throw new Error('on purpose');
    });
    pair.a.driver.defer(() => told.push('second'));
    assert.equal(pair.a.pumpRequests, 1, 'one request until pumped');
    pair.a.driver.pump();
    assert.deepEqual(told, ['second']);
  });
});

describe('Driver', () => {
  it('asks for a pump when a timer is started outside of one', () => {
    const pair = new HcaPair();
    const timer = new Timer(() => undefined);
    const { driver } = pair.a;
    driver.timers.start(timer, 5000);
    driver.timers.start(timer, 6000);
    assert.equal(pair.a.pumpRequests, 1);
    driver.pump();
    assert.equal(driver.nextDeadlineUs(), 6000);
    driver.timers.start(timer, 7000);
    assert.equal(pair.a.pumpRequests, 2);
  });

  it('runs handlers and tasks in the order of their causes', () => {
    const { pair, qpA, qpB } = connected();
    const order: string[] = [];
    qpB.eventHandler = (event) => order.push(`event ${event}`);
    pair.b.driver.defer(() => {
      order.push('first');
      pair.b.driver.defer(() => order.push('last'));
    });
    postSend(pair.a, qpA, { opcode: WrOpcode.RDMA_WRITE, segments: [{ offset: 0, length: 8 }] });
    pair.a.driver.pump();
    pair.b.driver.pump();
    assert.deepEqual(order, ['first', `event ${AsyncEventType.QP_ACCESS_ERR}`, 'last']);
  });

  it('goes on after a port that took nothing, and keeps what it has not taken', () => {
    const { pair, qpA, qpB } = connected();
    for (let i = 0; i < 10; i++) postReceive(pair.b, qpB, [{ offset: 64, length: 64 }], i);
    for (let i = 0; i < 10; i++) {
      pair.a.port.sendCredit = i % 3;
      postSend(pair.a, qpA, send);
      pair.a.driver.pump();
    }
    pair.a.port.sendCredit = Infinity;
    pair.a.driver.pump();
    pair.b.driver.pump();
    assert.deepEqual(
      drain(pair.b.receiveCq).map((c) => c.cookie),
      [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    );
    assert.equal(pair.a.driver.device.counters.retries, 0);
  });
});

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
      assert.equal(drops.noReceive, 1);
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
