/** Requests that an XRC target refuses, and the report of its end (IBTA annex A14). */
import assert from 'node:assert/strict';
import { AsyncEventType, QpState, WcStatus, WrOpcode } from '../../../core/spi/index.js';
import { drain } from '../../support/hca-pair.js';
import {
  FROM,
  TO,
  XRC_MTU,
  XrcHcaPair,
  XrcReceiver,
  data,
  fill,
  post,
  send,
  statuses,
} from '../../support/xrc-hca-pair.js';

const { SUCCESS, REM_INV_REQ_ERR, REM_ACCESS_ERR, REM_OP_ERR, WR_FLUSH_ERR } = WcStatus;

interface Violation {
  readonly name: string;
  /** Prepares and returns the number that the initiator names. */
  readonly srqn: (pair: XrcHcaPair) => number;
  readonly status: number;
}

const VIOLATIONS: readonly Violation[] = [
  {
    name: 'a number that no queue has',
    srqn: ({ receivers }) => (receivers[0]!.srq.srqn + 1000) & 0xffffff,
    status: REM_INV_REQ_ERR,
  },
  { name: 'number 0', srqn: () => 0, status: REM_INV_REQ_ERR },
  {
    name: 'a plain shared receive queue',
    srqn: ({ b }) => b.createSrq().srqn,
    status: REM_INV_REQ_ERR,
  },
  {
    name: 'a queue of another domain',
    srqn: ({ b }) => new XrcReceiver(b, b.driver.device.createXrcDomain()).srq.srqn,
    status: REM_INV_REQ_ERR,
  },
  {
    name: 'a queue that is destroyed',
    srqn: ({ receivers }) => {
      receivers[0]!.srq.destroy();
      return receivers[0]!.srq.srqn;
    },
    status: REM_INV_REQ_ERR,
  },
];

describe('XRC violations (IBTA annex A14)', () => {
  for (const { name, srqn, status } of VIOLATIONS) {
    for (const opcode of [WrOpcode.SEND, WrOpcode.RDMA_WRITE, WrOpcode.RDMA_READ]) {
      it(`${name}: opcode ${opcode} is refused, and the target is in error`, () => {
        const pair = new XrcHcaPair(1);
        const xrcSrqn = srqn(pair);
        const { rkey } = pair.receivers[0]!.region;
        const remoteAddress = pair.b.base + BigInt(TO);
        fill(pair.a.bytes);
        post(pair, { opcode, segments: data(3 * XRC_MTU), remoteAddress, rkey, xrcSrqn });
        assert.deepEqual(statuses(pair), [status]);
        assert.equal(pair.target.state, QpState.ERR);
        const { QP_REQ_ERR, QP_LAST_WQE_REACHED } = AsyncEventType;
        assert.deepEqual(pair.targetEvents.slice(-2), [QP_REQ_ERR, QP_LAST_WQE_REACHED]);
        assert.equal(pair.b.bytes[TO], 0, 'nothing has been placed');
      });
    }
  }

  it('a number that changes inside a message: the receive in use fails, and the target', () => {
    const pair = new XrcHcaPair(2);
    for (const [i, receiver] of pair.receivers.entries()) receiver.post(i, TO + i * 4096, 4096);
    pair.a.port.filter = (packet) => {
      const changed = packet.slice();
      const view = new DataView(changed.buffer);
      if (changed[0] === 0xa1) view.setUint32(12, pair.receivers[1]!.srq.srqn);
      return [changed];
    };
    post(pair, send(3 * XRC_MTU), 0);
    assert.deepEqual(statuses(pair), [REM_INV_REQ_ERR]);
    assert.deepEqual(
      pair.receivers.map((receiver) => receiver.drain().map(({ status }) => status)),
      [[REM_INV_REQ_ERR], []],
    );
    assert.equal(pair.target.state, QpState.ERR);
    assert.ok(pair.targetEvents.includes(AsyncEventType.QP_REQ_ERR));
  });

  for (const opcode of [WrOpcode.RDMA_WRITE, WrOpcode.RDMA_READ, WrOpcode.ATOMIC_FETCH_AND_ADD]) {
    it(`opcode ${opcode} with a key that the queue’s domain does not hold`, () => {
      const pair = new XrcHcaPair(2);
      const { rkey } = pair.receivers[0]!.region;
      const remoteAddress = pair.b.base + BigInt(TO);
      post(pair, { opcode, segments: data(8), remoteAddress, rkey }, 0);
      post(pair, { opcode, segments: data(8), remoteAddress, rkey }, 1);
      post(pair, send(1), 1);
      assert.deepEqual(statuses(pair), [SUCCESS, REM_ACCESS_ERR, WR_FLUSH_ERR]);
      assert.ok(pair.targetEvents.includes(AsyncEventType.QP_ACCESS_ERR));
    });
  }

  it('a queue whose completions overran is in error: remote operational error', () => {
    const pair = new XrcHcaPair(1, {}, {}, 2);
    const [receiver] = pair.receivers;
    for (let slot = 0; slot < 4; slot++) receiver!.post(slot, TO, 64);
    for (let i = 0; i < 3; i++) post(pair, send(1));
    pair.run(1000);
    assert.deepEqual(receiver!.events, [AsyncEventType.SRQ_ERR]);
    post(pair, send(1));
    assert.deepEqual(statuses(pair).slice(-1), [REM_OP_ERR]);
    assert.equal(pair.target.state, QpState.ERR);
  });

  it('a queue destroyed in the middle of a message: no completion, the target in error', () => {
    const pair = new XrcHcaPair(2);
    const [receiver] = pair.receivers;
    receiver!.post(0, TO, 4096);
    let packets = 0;
    pair.a.port.filter = (packet) => (++packets <= 2 ? [packet] : []);
    post(pair, send(4 * XRC_MTU));
    pair.settle();
    receiver!.srq.destroy();
    receiver!.cq.destroy();
    pair.a.port.filter = undefined;
    assert.deepEqual(statuses(pair), [REM_INV_REQ_ERR]);
    assert.equal(pair.target.state, QpState.ERR);
  });

  it('a target that was not granted reads refuses them', () => {
    const pair = new XrcHcaPair(1, {}, { maxDestRdAtomic: 0 });
    const remoteAddress = pair.b.base;
    const { rkey } = pair.receivers[0]!.region;
    post(pair, { opcode: WrOpcode.RDMA_READ, segments: data(8), remoteAddress, rkey });
    assert.deepEqual(statuses(pair), [REM_INV_REQ_ERR]);
  });
});

describe('XRC: flow control and errors', () => {
  it('an empty queue answers RNR; a slow receiver holds up the others', () => {
    const pair = new XrcHcaPair(2);
    pair.receivers[1]!.post(0, TO, 64);
    post(pair, send(5), 0);
    post(pair, send(6), 1);
    pair.run(5000);
    assert.deepEqual(drain(pair.a.sendCq), []);
    assert.ok(pair.b.driver.device.counters.rnrNaksSent > 0);
    pair.receivers[0]!.post(0, TO, 64);
    assert.deepEqual(statuses(pair), [SUCCESS, SUCCESS]);
    assert.deepEqual(
      pair.receivers.map((receiver) => receiver.drain()[0]!.byteLength),
      [5, 6],
    );
  });

  it('when the target is in error, the sender learns by RETRY_EXC', () => {
    const pair = new XrcHcaPair(1);
    pair.receivers[0]!.post(0, TO, 64);
    pair.target.modify({ state: QpState.ERR });
    post(pair, send(1));
    post(pair, send(1));
    assert.deepEqual(statuses(pair), [WcStatus.RETRY_EXC_ERR, WR_FLUSH_ERR]);
    assert.deepEqual(pair.receivers[0]!.drain(), [], 'what is posted stays for others');
    assert.deepEqual(pair.targetEvents, [AsyncEventType.QP_LAST_WQE_REACHED]);
  });

  it('a target that is destroyed: the same', () => {
    const pair = new XrcHcaPair(1);
    pair.target.destroy();
    post(pair, send(1));
    assert.deepEqual(statuses(pair), [WcStatus.RETRY_EXC_ERR]);
  });

  it('in the middle of a message the receive in use is flushed to its owner', () => {
    const pair = new XrcHcaPair(1);
    const [receiver] = pair.receivers;
    receiver!.post(3, TO, 4096);
    pair.a.port.filter = (packet) => (packet[0] === 0xa2 ? [] : [packet]);
    post(pair, send(3 * XRC_MTU));
    pair.settle();
    pair.target.modify({ state: QpState.ERR });
    const flushed = receiver!.drain().map(({ status, wqeIndex }) => [status, wqeIndex]);
    assert.deepEqual(flushed, [[WR_FLUSH_ERR, 3]]);
  });

  it('a READ is answered again from the domain that it was asked of', () => {
    const pair = new XrcHcaPair(2);
    fill(pair.b.bytes);
    let lost = 0;
    pair.b.port.filter = (packet) => (packet[0] === 0xaf && lost++ === 0 ? [] : [packet]);
    const length = 2 * XRC_MTU;
    for (const i of [0, 1]) {
      const remoteAddress = pair.b.base + BigInt(TO + i * length);
      const { rkey } = pair.receivers[i]!.region;
      const segments = [{ offset: FROM + i * length, length }];
      post(pair, { opcode: WrOpcode.RDMA_READ, segments, remoteAddress, rkey }, i);
    }
    assert.deepEqual(statuses(pair), [SUCCESS, SUCCESS]);
    assert.deepEqual(
      pair.a.bytes.subarray(FROM, FROM + 2 * length),
      pair.b.bytes.subarray(TO, TO + 2 * length),
    );
  });
});
