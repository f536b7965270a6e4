/** Shared receive queues: who gets which slot, and how they end. */
import assert from 'node:assert/strict';
import {
  Access,
  AsyncEventType,
  QpState,
  QpType,
  type QueuePair,
  WcStatus,
  WrOpcode,
} from '../../../core/spi/index.js';
import { HcaPair, connect, drain, postSend, postShared } from '../../support/hca-pair.js';
import { SLOT_BYTES, buffer, send, shared, slots } from '../../support/shared-receives.js';

const { SUCCESS, WR_FLUSH_ERR, LOC_LEN_ERR, REM_INV_REQ_ERR } = WcStatus;

describe('Shared receive queue', () => {
  it('gives its slots, in the order of submission, to whichever queue pair needs one', () => {
    const { pair, srq, senders, receivers } = shared(3);
    assert.equal(receivers[0]!.receiveRing, undefined);
    pair.a.bytes.fill(0x5a, 0, 64);
    for (const slot of [5, 0, 7]) postShared(pair.b, srq, slot, buffer(slot), 100 + slot);
    for (const i of [2, 0, 1]) {
      postSend(pair.a, senders[i]!, send(10 + i));
      pair.run(100);
    }
    assert.deepEqual(
      drain(pair.b.receiveCq).map((c) => [c.context, c.wqeIndex, c.cookie, c.byteLength, c.srqn]),
      [
        [2, 5, 105, 12, srq.srqn],
        [0, 0, 100, 10, srq.srqn],
        [1, 7, 107, 11, srq.srqn],
      ],
    );
    assert.equal(pair.b.bytes.subarray(5 * SLOT_BYTES).indexOf(0), 12);
  });

  it('frees slots one by one: those that completed are submitted again, others stay', () => {
    const { pair, srq, senders } = shared(2, { maxWr: 2 });
    const fill = (slot: number): void => postShared(pair.b, srq, slot, buffer(slot));
    fill(0);
    fill(1);
    for (let round = 0; round < 300; round++) {
      postSend(pair.a, senders[round % 2]!, send());
      pair.run(50);
      const [received] = drain(pair.b.receiveCq);
      assert.equal(received?.wqeIndex, round % 2);
      fill(received.wqeIndex);
    }
    assert.equal(srq.ring.submissions.length, 0);
  });

  it('has one entry for each message under way, also when several are cut in packets', () => {
    const { pair, srq, senders } = shared(2);
    pair.a.bytes.fill(1, 0, SLOT_BYTES);
    for (const slot of [3, 4]) postShared(pair.b, srq, slot, buffer(slot));
    pair.b.port.sendCredit = 0;
    for (const qp of senders) postSend(pair.a, qp, send(SLOT_BYTES));
    pair.b.port.sendCredit = Infinity;
    pair.run(1000);
    const done = drain(pair.b.receiveCq);
    assert.deepEqual(slots(done).sort(), [3, 4]);
    assert.ok(done.every((c) => c.byteLength === SLOT_BYTES && c.status === SUCCESS));
    assert.equal(pair.b.bytes.subarray(3 * SLOT_BYTES, 5 * SLOT_BYTES).indexOf(0), -1);
  });

  it('serves WRITE with immediate, and lets other WRITEs pass', () => {
    const { pair, srq, senders } = shared();
    postShared(pair.b, srq, 1, buffer(1));
    const write = {
      ...send(),
      remoteAddress: pair.b.base,
      rkey: pair.b.region.rkey,
    };
    postSend(pair.a, senders[0]!, { ...write, opcode: WrOpcode.RDMA_WRITE });
    const opcode = WrOpcode.RDMA_WRITE_WITH_IMM;
    postSend(pair.a, senders[0]!, { ...write, opcode, immediate: 77 });
    pair.run(100);
    assert.deepEqual(
      drain(pair.b.receiveCq).map((c) => [c.wqeIndex, c.immediate, c.byteLength]),
      [[1, 77, 8]],
    );
  });

  it('when empty answers RNR, and the message comes when a slot is there', () => {
    const { pair, srq, senders } = shared();
    postSend(pair.a, senders[0]!, send());
    pair.run(5000);
    assert.deepEqual(drain(pair.a.sendCq), []);
    assert.ok(pair.b.driver.device.counters.rnrNaksSent > 0);
    postShared(pair.b, srq, 2, buffer(2));
    pair.run(5000);
    assert.deepEqual(slots(drain(pair.b.receiveCq)), [2]);
    assert.equal(drain(pair.a.sendCq)[0]?.status, SUCCESS);
  });

  it('when empty for too long fails the sender with RNR_RETRY_EXC_ERR', () => {
    const pair = new HcaPair();
    const qpA = pair.a.createQp();
    connect(pair, qpA, pair.b.createQp({ srq: pair.b.createSrq() }), { rnrRetryCount: 2 });
    postSend(pair.a, qpA, send());
    pair.run(100_000);
    assert.equal(drain(pair.a.sendCq)[0]?.status, WcStatus.RNR_RETRY_EXC_ERR);
    assert.equal(pair.b.driver.device.counters.rnrNaksSent, 3);
  });

  it('fails the receive in use when the message is longer, and leaves the others', () => {
    const { pair, srq, senders, receivers } = shared(2);
    postShared(pair.b, srq, 0, buffer(0, 4));
    postShared(pair.b, srq, 1, buffer(1));
    postSend(pair.a, senders[0]!, send());
    pair.run(1000);
    assert.deepEqual(
      drain(pair.b.receiveCq).map((c) => [c.wqeIndex, c.status]),
      [[0, LOC_LEN_ERR]],
    );
    assert.equal(receivers[0]!.state, QpState.ERR);
    postSend(pair.a, senders[1]!, send());
    pair.run(1000);
    assert.deepEqual(slots(drain(pair.b.receiveCq)), [1]);
    assert.deepEqual(
      drain(pair.a.sendCq).map((c) => c.status),
      [REM_INV_REQ_ERR, SUCCESS],
    );
  });

  it('checks the keys of its segments in its own domain, not in that of the queue pair', () => {
    const pair = new HcaPair();
    const { device } = pair.b.driver;
    const pd = device.createProtectionDomain();
    const lkey = pd.registerMemory(pair.b.bytes, Access.LOCAL_WRITE, pair.b.base).lkey;
    const srq = pair.b.createSrq({ pd });
    const [qpA, qpB] = [pair.a.createQp(), pair.b.createQp({ srq })];
    connect(pair, qpA, qpB);
    const entry = [{ offset: 0, length: 64, lkey }];
    postShared(pair.b, srq, 0, entry);
    postShared(pair.b, srq, 1, buffer(0));
    for (let i = 0; i < 2; i++) postSend(pair.a, qpA, send());
    pair.run(1000);
    assert.deepEqual(
      drain(pair.b.receiveCq).map((c) => c.status),
      [SUCCESS, WcStatus.LOC_PROT_ERR],
    );
  });

  it('serves datagrams; one that does not fit leaves its slot to the next', () => {
    const pair = new HcaPair();
    const srq = pair.b.createSrq();
    const [qpA, qpB] = [pair.a, pair.b].map((side) => {
      const qp = side.createQp({ type: QpType.UD, ...(side === pair.b && { srq }) });
      qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, qkey: 9 });
      qp.modify({ state: QpState.RTR });
      qp.modify({ state: QpState.RTS, sendPsn: 1 });
      return qp;
    });
    const gid = pair.b.port.gids[0]!;
    const ah = pair.a.driver.device.createAddressHandle(pair.a.pd, { gid, localGidIndex: 0 });
    const to = { addressHandle: ah.handle, remoteQpn: qpB!.qpn, remoteQkey: 9 };
    postShared(pair.b, srq, 6, buffer(6, 100));
    postSend(pair.a, qpA!, { ...send(61), ...to });
    postSend(pair.a, qpA!, { ...send(60), ...to });
    postSend(pair.a, qpA!, { ...send(60), ...to });
    pair.run(100);
    assert.deepEqual(
      drain(pair.b.receiveCq).map((c) => [c.wqeIndex, c.byteLength, c.srqn]),
      [[6, 100, srq.srqn]],
    );
    const { drops } = pair.b.driver.device.counters;
    assert.deepEqual([drops.bufferTooSmall, drops.noReceive], [1, 1]);
  });
  describe('the end of a queue pair', () => {
    const last = AsyncEventType.QP_LAST_WQE_REACHED;

    it('in ERR flushes the entry in use only, then tells that no other will complete', () => {
      const { pair, srq, senders, receivers } = shared(2);
      for (const slot of [4, 2]) postShared(pair.b, srq, slot, buffer(slot));
      pair.a.port.sendCredit = 2;
      postSend(pair.a, senders[0]!, send(SLOT_BYTES));
      pair.settle();
      receivers[0]!.modify({ state: QpState.ERR });
      assert.deepEqual(pair.b.events, [], 'nobody is called inside modify');
      pair.settle();
      assert.deepEqual(
        drain(pair.b.receiveCq).map((c) => [c.wqeIndex, c.status, c.context, c.srqn]),
        [[4, WR_FLUSH_ERR, 0, srq.srqn]],
      );
      assert.deepEqual(pair.b.events, [last]);
      // Once, whatever comes behind it.
      pair.a.port.sendCredit = Infinity;
      receivers[0]!.modify({ state: QpState.ERR });
      receivers[0]!.ringReceiveDoorbell();
      pair.run(1000);
      assert.deepEqual(pair.b.events, [last]);
      postSend(pair.a, senders[1]!, send());
      pair.run(1000);
      assert.deepEqual(slots(drain(pair.b.receiveCq)), [2]);
    });

    it('tells of the error that ended it before it tells of the last entry', () => {
      const { pair, srq, senders } = shared();
      postShared(pair.b, srq, 0, buffer(0));
      const remoteAddress = pair.b.base;
      postSend(pair.a, senders[0]!, {
        ...send(),
        opcode: WrOpcode.RDMA_WRITE,
        remoteAddress,
        rkey: 1,
      });
      pair.run(1000);
      assert.deepEqual(pair.b.events, [AsyncEventType.QP_ACCESS_ERR, last]);
      assert.deepEqual(drain(pair.b.receiveCq), []);
    });

    for (const [how, end] of [
      ['RESET', (qp: QueuePair) => qp.modify({ state: QpState.RESET })],
      ['destroy', (qp: QueuePair) => qp.destroy()],
    ] as const) {
      it(`by ${how} in the middle of a message gives its entry to the next one`, () => {
        const { pair, srq, senders, receivers } = shared(2);
        for (const slot of [4, 2]) postShared(pair.b, srq, slot, buffer(slot));
        pair.a.port.sendCredit = 2;
        postSend(pair.a, senders[0]!, send(SLOT_BYTES));
        pair.settle();
        end(receivers[0]!);
        senders[0]!.modify({ state: QpState.ERR });
        pair.a.port.sendCredit = Infinity;
        for (let i = 0; i < 2; i++) postSend(pair.a, senders[1]!, send());
        pair.run(1000);
        assert.deepEqual(slots(drain(pair.b.receiveCq)), [4, 2]);
        assert.deepEqual(pair.b.events, []);
      });
    }
  });

  describe('as an object', () => {
    it('stays while queue pairs receive from it, and its domain while it is there', () => {
      const { srq, receivers, pair } = shared();
      assert.throws(() => srq.destroy(), { code: 'EBUSY', message: /1 queue pairs/ });
      receivers[0]!.destroy();
      assert.throws(() => pair.b.pd.destroy(), { code: 'EBUSY' });
      srq.destroy();
      srq.destroy();
      for (const call of [
        () => srq.ringDoorbell(),
        () => srq.setLimit(1),
        () => srq.resize(4),
        () => pair.b.createQp({ srq }),
      ]) {
        assert.throws(call, { code: 'EINVAL', message: /destroyed/ });
      }
      pair.b.region.destroy();
      pair.b.pd.destroy();
    });

    it('is refused with sizes out of range, and by a queue pair of another device', () => {
      const pair = new HcaPair();
      for (const init of [{ maxWr: 0 }, { maxWr: 1 << 24 }, { maxSge: 17 }, { maxSge: -1 }]) {
        assert.throws(() => pair.b.createSrq(init), { code: 'EINVAL', message: /max(Wr|Sge)/ });
      }
      assert.throws(() => pair.b.createSrq({ pd: pair.a.pd }), { code: 'EINVAL' });
      assert.throws(() => pair.a.createQp({ srq: pair.b.createSrq() }), { code: 'EINVAL' });
      const { attributes, capabilities } = pair.b.driver.device;
      assert.ok(capabilities.has('shared-receive-queue'));
      assert.ok(attributes.maxSharedReceiveQueues > 0 && attributes.maxSharedReceiveQueueWr > 0);
    });

    it('has a number of 24 bits, its own', () => {
      const pair = new HcaPair(3);
      const numbers = Array.from({ length: 100 }, () => pair.b.createSrq().srqn);
      assert.equal(new Set(numbers).size, 100);
      assert.ok(numbers.every((srqn) => srqn > 0 && srqn < 1 << 24));
    });

    it('goes with its device, behind the queue pairs that use it', async () => {
      const { pair, srq } = shared();
      await pair.b.driver.device.close();
      assert.throws(() => srq.ringDoorbell(), { code: 'EINVAL' });
      assert.throws(() => pair.b.createSrq(), { code: 'ENODEV' });
    });
  });

  it('under loss, repetition and reordering gives each message one slot', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const { pair, srq, senders } = shared(4, { maxWr: 8 }, seed);
      let state = seed;
      const random = (n: number): number => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return (state >>> 8) % n;
      };
      const faults = (packet: Uint8Array): Uint8Array[] => {
        const roll = random(100);
        return roll < 5 ? [] : roll < 10 ? [packet.slice(), packet] : [packet];
      };
      pair.a.port.filter = faults;
      pair.b.port.filter = faults;
      const free = [0, 1, 2, 3, 4, 5, 6, 7];
      let sent = 0;
      const received: number[] = [];
      while (received.length < 60) {
        while (free.length > random(4)) {
          const slot = free.splice(random(free.length), 1)[0]!;
          postShared(pair.b, srq, slot, buffer(slot));
        }
        for (; sent < 60 && sent < received.length + 12; sent++) {
          const request = { ...send(1 + random(SLOT_BYTES)), opcode: WrOpcode.SEND_WITH_IMM };
          postSend(pair.a, senders[sent % 4]!, { ...request, immediate: sent });
        }
        pair.run(1 + random(3000));
        for (const c of drain(pair.b.receiveCq)) {
          assert.equal(c.status, SUCCESS, `seed ${seed}`);
          assert.ok(!free.includes(c.wqeIndex));
          free.push(c.wqeIndex);
          received.push(c.immediate);
        }
      }
      for (let i = 0; i < 4; i++) {
        const own = received.filter((immediate) => immediate % 4 === i);
        assert.deepEqual(
          own,
          Array.from({ length: 15 }, (_, n) => n * 4 + i),
          `seed ${seed}`,
        );
      }
    }
  });
});
