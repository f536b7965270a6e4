// Unreliable queue pairs: UC, UD, address handles, groups.

import assert from 'node:assert/strict';
import { gidFromIp } from '../../../core/spi/wire/address.js';
import type { QueuePair } from '../../../core/spi/device/device.js';
import { QpState, QpType, WcFlags, WcStatus, WrOpcode } from '../../../core/spi/wire/ib.js';
import { connect, open } from '../../fake-verbs/connect.js';
import { Pair } from '../../fake-verbs/pair.js';
import { drain, postReceives, postSends } from '../../fake-verbs/work.js';

const QKEY = 0x1234;
const EOPNOTSUPP = 95;

describe('verbs: unreliable queue pairs', () => {
  let pair: Pair;
  beforeEach(() => (pair = new Pair()));
  afterEach(async () => {
    await pair.device.close();
  });

  const make = (type: QpType, side: 'A' | 'B'): QueuePair =>
    pair.device.createQueuePair({ ...pair.initOf(side, undefined), type });

  it('UC sends and writes, and needs no attribute of reliability', () => {
    const a = make(QpType.UC, 'A');
    const b = make(QpType.UC, 'B');
    assert.throws(
      () => a.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1 }),
      /UC RESET->INIT: accessFlags missing/,
    );
    connect(pair.device, a, b);
    connect(pair.device, b, a);
    postReceives(b, [pair.at(512, 16)]);
    pair.memory.fill(3, 0, 8);
    postSends(
      a,
      { opcode: WrOpcode.SEND, segments: [pair.at(0, 8)] },
      { opcode: WrOpcode.RDMA_WRITE, segments: [pair.at(0, 8)], remote: pair.remote(1024) },
    );
    const statuses = drain(pair.queues['send A']).map((c) => c.status);
    assert.deepEqual(statuses, [WcStatus.SUCCESS, WcStatus.SUCCESS]);
    assert.equal(drain(pair.queues['receive B']).length, 1);
    assert.deepEqual([pair.memory[512], pair.memory[1024]], [3, 3]);
    const { maxRdAtomic, timeout, pathMtuBytes } = a.query();
    assert.deepEqual([maxRdAtomic, timeout, typeof pathMtuBytes], [undefined, undefined, 'number']);
  });

  it('UD goes where its entry says, and the receiver learns from whom', () => {
    const a = make(QpType.UD, 'A');
    const b = make(QpType.UD, 'B');
    open(pair.device, a, QKEY);
    open(pair.device, b, QKEY);
    const { gids } = pair.device;
    const handles = gids.map((gid, localGidIndex) =>
      pair.device.createAddressHandle(pair.pd, { gid, localGidIndex, hopLimit: 3 }),
    );
    for (const { handle } of handles) {
      postReceives(b, [pair.at(1024, 256)]);
      const to = { ah: handle, qpn: b.qpn, qkey: QKEY };
      const segments = [pair.at(0, 16)];
      postSends(a, { opcode: WrOpcode.SEND_WITH_IMM, segments, to, extra: 0x01020304 });
      assert.equal(drain(pair.queues['send A'])[0]?.status, WcStatus.SUCCESS);
      const [got] = drain(pair.queues['receive B']);
      assert.deepEqual(
        [got?.flags, got?.extra, got?.byteLength, got?.sourceQpn],
        [WcFlags.GRH | WcFlags.WITH_IMM, 0x01020304, 56, a.qpn],
      );
    }
    assert.equal(a.query().qkey, QKEY);
    for (const handle of handles) handle.destroy();
  });

  it('UD completes in error what has no address, or is no send', () => {
    const gid = pair.device.gids[0] ?? new Uint8Array(16);
    const ah = pair.device.createAddressHandle(pair.pd, { gid, localGidIndex: 0 });
    for (const wrong of [
      { opcode: WrOpcode.SEND, to: { ah: 99, qpn: 2, qkey: QKEY } },
      { opcode: WrOpcode.RDMA_WRITE, remote: pair.remote(0) },
    ]) {
      const a = make(QpType.UD, 'A');
      open(pair.device, a, QKEY);
      const good = { opcode: WrOpcode.SEND, to: { ah: ah.handle, qpn: 0xfffffe, qkey: QKEY } };
      postSends(a, good, wrong, good);
      assert.deepEqual(
        drain(pair.queues['send A']).map((c) => [c.index, c.status]),
        [
          [0, WcStatus.SUCCESS],
          [1, WcStatus.LOC_QP_OP_ERR],
          [2, WcStatus.WR_FLUSH_ERR],
        ],
      );
      assert.equal(a.state, QpState.ERR);
      a.destroy();
    }
  });

  it('address handles belong to their domain', () => {
    const pd = pair.device.createProtectionDomain();
    const gid = pair.device.gids[0] ?? new Uint8Array(16);
    const ah = pair.device.createAddressHandle(pd, { gid, localGidIndex: 0 });
    assert.throws(() => pd.destroy(), { code: 'EBUSY' });
    ah.destroy();
    pd.destroy();
    const short = { gid: new Uint8Array(4), localGidIndex: 0 };
    assert.throws(() => pair.device.createAddressHandle(pair.pd, short), { code: 'EINVAL' });
    assert.throws(() => pair.device.createAddressHandle(pd, { gid, localGidIndex: 0 }), {
      message: /domain is destroyed/,
    });
  });

  it('datagram queue pairs attach to groups', () => {
    const a = make(QpType.UD, 'A');
    open(pair.device, a, QKEY);
    const group = gidFromIp('239.1.2.3');
    assert.throws(() => a.attachMulticast?.(group, { loopback: false }), { code: 'EOPNOTSUPP' });
    a.attachMulticast?.(group, { sendOnly: true });
    assert.throws(() => a.detachMulticast?.(group), { code: 'EINVAL' });
    a.attachMulticast?.(group);
    a.detachMulticast?.(group);
    assert.throws(() => a.attachMulticast?.(gidFromIp('10.0.0.1')), { message: /10\.0\.0\.1/ });
    assert.throws(() => pair.a.attachMulticast?.(group), { code: 'EINVAL' });
  });

  it('a queue pair made for it blocks its own copy, in all groups; others hear it', () => {
    const init = { ...pair.initOf('A', undefined), type: QpType.UD, blocksOwnMulticast: true };
    const a = pair.device.createQueuePair(init);
    const b = make(QpType.UD, 'B');
    const group = gidFromIp('239.1.2.3');
    const plain = /verbs block .* attribute multicastLoopback (true|false)/;
    assert.throws(() => a.attachMulticast?.(group, { loopback: true }), { message: plain });
    assert.throws(() => b.attachMulticast?.(group, { loopback: false }), { message: plain });
    a.attachMulticast?.(group, { loopback: false });
    b.attachMulticast?.(group);
    const ah = pair.device.createAddressHandle(pair.pd, { gid: group, localGidIndex: 0 });
    for (const qp of [a, b]) {
      open(pair.device, qp, QKEY);
      postReceives(qp, [pair.at(512, 64)], [pair.at(1024, 64)]);
    }
    for (const qp of [a, b]) {
      const to = { ah: ah.handle, qpn: 0xffffff, qkey: QKEY };
      postSends(qp, { opcode: WrOpcode.SEND, segments: [pair.at(0, 8)], to });
    }
    const heard = (role: 'receive A' | 'receive B'): (number | undefined)[] =>
      drain(pair.queues[role]).map(({ sourceQpn }) => sourceQpn);
    assert.deepEqual(heard('receive A'), [b.qpn]);
    assert.deepEqual(heard('receive B'), [a.qpn, b.qpn]);
    ah.destroy();
  });

  it('a driver that cannot block own copies refuses the queue pair, and names the flag', () => {
    const init = { ...pair.initOf('A', undefined), type: QpType.UD, blocksOwnMulticast: true };
    pair.fake.inject('ibv_create_qp_ex', 1, EOPNOTSUPP);
    assert.throws(() => pair.device.createQueuePair(init), {
      code: 'EOPNOTSUPP',
      message: /ibv_create_qp_ex.*IBV_QP_CREATE_BLOCK_SELF_MCAST_LB/,
    });
    pair.fake.clearInjections();
  });

  it('says which attribute is wrong before the kernel is asked', () => {
    const a = make(QpType.RC, 'A');
    a.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: 0 });
    const gid = pair.device.gids[0] ?? new Uint8Array(16);
    const path = {
      state: QpState.RTR,
      addressVector: { gid, localGidIndex: 0 },
      pathMtuBytes: 1024,
      destinationQpn: 5,
      receivePsn: 0,
      maxDestRdAtomic: 1,
      minRnrTimer: 12,
    };
    for (const [wrong, message] of [
      [{ pathMtuBytes: 1500 }, /pathMtuBytes is 1500;/],
      [
        { destinationQpn: 2 ** 24 },
        /destinationQpn is 16777216; it must be an integer from 0 to 16777215/,
      ],
      [{ minRnrTimer: 32 }, /minRnrTimer is 32;/],
      [{ timeout: 14 }, /RC INIT->RTR: takes no timeout/],
      [{ receivePsn: undefined }, /RC INIT->RTR: receivePsn missing/],
      [{ addressVector: { gid, localGidIndex: 77 } }, /localGidIndex is 77;/],
    ] as const) {
      const attributes = { ...path, ...wrong } as Parameters<QueuePair['modify']>[0];
      assert.throws(() => a.modify(attributes), { name: 'SpiError', code: 'EINVAL', message });
    }
    a.modify(path);
    assert.match(a.flightRecord().join('\n'), /RESET->INIT\nINIT->RTR receivePsn=0/);
    const { addressVector, ...rest } = a.query();
    assert.deepEqual(addressVector?.gid, gid);
    assert.equal(rest.destinationQpn, 5);
    assert.equal(rest.state, QpState.RTR);
  });
});
