import assert from 'node:assert/strict';
import { AsyncEventType, QpState, WcStatus, WrFlags, WrOpcode } from '../../../core/spi/index.js';
import {
  HcaPair,
  connect,
  connectedPair,
  drain,
  postReceive,
  postSend,
} from '../../support/hca-pair.js';

const send = { opcode: WrOpcode.SEND, segments: [{ offset: 0, length: 8 }] };

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
    const { pair, qpA } = connectedPair(21);
    postReceive(pair.a, qpA, [{ offset: 64, length: 64 }]);
    postSend(pair.a, qpA, send, false);
    qpA.modify({ state: QpState.RESET });
    pair.run(1000);
    assert.deepEqual([...drain(pair.a.sendCq), ...drain(pair.a.receiveCq)], []);
    assert.equal(qpA.sendRing.length, 0);
    assert.deepEqual(qpA.query(), { state: QpState.RESET, currentState: QpState.RESET });
  });

  it('says what it has been given, zeros included, and nothing else', () => {
    const { pair, qpA } = connectedPair(21);
    const fresh = pair.a.createQp();
    assert.deepEqual(fresh.query(), { state: QpState.RESET, currentState: QpState.RESET });
    const first = { pkeyIndex: 0, portNumber: 1, accessFlags: 0 };
    fresh.modify({ state: QpState.INIT, ...first });
    const init = { state: QpState.INIT, currentState: QpState.INIT };
    assert.deepEqual(fresh.query(), { ...first, ...init });
    const { addressVector } = qpA.query();
    assert.ok(addressVector);
    const next = {
      addressVector,
      pathMtuBytes: 4096,
      destinationQpn: 0xffffff,
      receivePsn: 0xffffffff,
      maxDestRdAtomic: 0,
      minRnrTimer: 0,
    };
    fresh.modify({ state: QpState.RTR, ...next });
    const last = { sendPsn: 0, timeout: 31, retryCount: 7, rnrRetryCount: 0, maxRdAtomic: 0 };
    fresh.modify({ state: QpState.RTS, ...last });
    const all = { ...first, ...next, ...last };
    const rts = { state: QpState.RTS, currentState: QpState.RTS };
    assert.deepEqual(fresh.query(), { ...all, ...rts });
    const [yes, no] = [true, false].map((enableSqdAsyncNotify) => {
      fresh.modify({ state: QpState.SQD, enableSqdAsyncNotify });
      const answer = fresh.query();
      fresh.modify({ state: QpState.RTS });
      return answer;
    });
    const sqd = { state: QpState.SQD, currentState: QpState.SQD };
    assert.deepEqual(yes, { ...all, ...sqd, enableSqdAsyncNotify: true });
    assert.deepEqual(no, { ...all, ...sqd, enableSqdAsyncNotify: false });
    fresh.modify({ state: QpState.RESET });
    assert.deepEqual(fresh.query(), { state: QpState.RESET, currentState: QpState.RESET });
  });

  it('works again after RESET', () => {
    const { pair, qpA, qpB } = connectedPair(21);
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
    const { pair, qpA, qpB } = connectedPair(21);
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
    const { pair, qpA } = connectedPair(21);
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
    const { pair, qpA, qpB } = connectedPair(21);
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
    const { qpA } = connectedPair(21);
    qpA.modify({ state: QpState.RESET });
    const init = { state: QpState.INIT, portNumber: 1, accessFlags: 0 } as const;
    assert.throws(
      () => qpA.modify({ ...init, pkeyIndex: 1 }),
      /pkeyIndex is 1; it must be an integer from 0 to 0/,
    );
    const unknown = { ...init, pkeyIndex: 0, accessFlags: 0x100 };
    assert.throws(() => qpA.modify(unknown), /accessFlags is 256;/);
    assert.equal(qpA.state, QpState.RESET);
  });

  it('parents go after their children', async () => {
    const { pair, qpA } = connectedPair(21);
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

  it('is refused with completion queues of another device, or that are gone', () => {
    const pair = new HcaPair();
    const { sendCq } = pair.b;
    assert.throws(() => pair.a.createQp({ sendCq }), {
      code: 'EINVAL',
      message: /sendCq is .* one of this device/,
    });
    const cq = pair.a.driver.device.createCompletionQueue({
      minEntries: 1,
      onNotify: () => undefined,
      onEvent: () => undefined,
    });
    cq.destroy();
    assert.throws(() => pair.a.createQp({ receiveCq: cq }), {
      code: 'EINVAL',
      message: /destroyed/,
    });
    assert.throws(() => pair.a.createQp({ pd: pair.b.pd }), { code: 'EINVAL' });
  });
});
