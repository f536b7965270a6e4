/** UC queue pairs: bad requests and receives, windows, states. */
import assert from 'node:assert/strict';
import {
  Access,
  AsyncEventType,
  QpState,
  WcOpcode,
  WcStatus,
  WrOpcode,
  nextRkey,
} from '../../../core/spi/index.js';
import {
  connectUc,
  drain,
  postReceive,
  postSend,
  type SendRequest,
} from '../../support/hca-pair.js';
import { MTU, area, connected, copied, send, write } from '../../support/uc-pair.js';

const { SUCCESS, WR_FLUSH_ERR } = WcStatus;

describe('UC queue pair', () => {
  it('fails a receive whose own memory is not to be written, and goes to ERR', () => {
    const { pair, qpA, qpB } = connected();
    postReceive(pair.b, qpB, [{ offset: 0, length: 64, lkey: 9 }], 1);
    postReceive(pair.b, qpB, area(0), 2);
    postSend(pair.a, qpA, send(8));
    pair.run(100);
    assert.deepEqual(
      drain(pair.b.receiveCq).map((c) => [c.cookie, c.status]),
      [
        [1, WcStatus.LOC_PROT_ERR],
        [2, WR_FLUSH_ERR],
      ],
    );
    assert.equal(qpB.state, QpState.ERR);
  });

  const bad: [string, Partial<SendRequest>, number][] = [
    ['READ', { opcode: WrOpcode.RDMA_READ }, WcStatus.LOC_QP_OP_ERR],
    ['atomic', { opcode: WrOpcode.ATOMIC_FETCH_AND_ADD }, WcStatus.LOC_QP_OP_ERR],
    ['SEND with invalidate', { opcode: WrOpcode.SEND_WITH_INV }, WcStatus.LOC_QP_OP_ERR],
    ['unknown opcode', { opcode: 40 }, WcStatus.LOC_QP_OP_ERR],
    ['lkey', { segments: [{ offset: 0, length: 8, lkey: 3 }] }, WcStatus.LOC_PROT_ERR],
    [
      'lkey of a later packet',
      { segments: [area(0, 2 * MTU)[0]!, { offset: 0, length: 8, lkey: 3 }] },
      WcStatus.LOC_PROT_ERR,
    ],
  ];
  for (const [what, request, status] of bad) {
    it(`stops (SQE) at a request with a bad ${what}, after what was before it`, () => {
      const { pair, qpA, qpB } = connected();
      for (let i = 0; i < 4; i++) postReceive(pair.b, qpB, area(i * 64, 64), i);
      postSend(pair.a, qpA, send(8, 1));
      postSend(pair.a, qpA, { ...send(8, 2), ...request });
      postSend(pair.a, qpA, send(8, 3));
      pair.run(100);
      assert.deepEqual(
        drain(pair.a.sendCq).map((c) => [c.cookie, c.status]),
        [
          [1, SUCCESS],
          [2, status],
          [3, WR_FLUSH_ERR],
        ],
      );
      assert.equal(qpA.state, QpState.SQE);
      // It still receives, and sends again after RTS.
      postReceive(pair.a, qpA, area(0x9000));
      postSend(pair.b, qpB, send(8));
      qpA.modify({ state: QpState.RTS });
      postSend(pair.a, qpA, send(8, 4));
      pair.run(100);
      assert.equal(drain(pair.a.receiveCq)[0]?.status, SUCCESS);
      assert.ok(drain(pair.b.receiveCq).every((c) => c.byteLength === 8 && c.status === SUCCESS));
    });
  }

  it('binds and invalidates windows in the order of its requests', () => {
    const { pair, qpA, qpB } = connected();
    const access = Access.LOCAL_WRITE | Access.MW_BIND;
    const region = pair.b.pd.registerMemory(pair.b.bytes, access, pair.b.base);
    const window = pair.b.driver.device.createMemoryWindow(pair.b.pd, 2);
    const rkey = nextRkey(window.rkey);
    const address = pair.b.base + 0x4000n;
    const bind = { window, rkey, region, address, length: 64, access: Access.REMOTE_WRITE };
    postSend(pair.b, qpB, { opcode: WrOpcode.BIND_MW, bind });
    pair.run(100);
    postSend(pair.a, qpA, { ...write(pair, 64), rkey });
    pair.run(100);
    assert.ok(copied(pair, 0x4000, 64));
    postSend(pair.b, qpB, { opcode: WrOpcode.LOCAL_INV, immediate: rkey });
    pair.run(100);
    assert.deepEqual(
      drain(pair.b.sendCq).map((c) => c.opcode),
      [WcOpcode.BIND_MW, WcOpcode.LOCAL_INV],
    );
    postSend(pair.a, qpA, { ...write(pair, 32), rkey });
    pair.run(100);
    assert.equal(pair.b.driver.device.counters.drops.refusedAccess, 1);
    postSend(pair.b, qpB, { opcode: WrOpcode.LOCAL_INV, immediate: rkey });
    pair.run(100);
    assert.equal(drain(pair.b.sendCq)[0]?.status, WcStatus.MW_BIND_ERR);
    assert.equal(qpB.state, QpState.SQE);
  });

  it('in SQD ends the message it has begun, tells, and begins the next in RTS', () => {
    const { pair, qpA, qpB } = connected();
    for (let i = 0; i < 2; i++) postReceive(pair.b, qpB, area(0));
    pair.a.port.sendCredit = 1;
    postSend(pair.a, qpA, send(3 * MTU));
    pair.settle();
    qpA.modify({ state: QpState.SQD, enableSqdAsyncNotify: true });
    assert.throws(() => qpA.modify({ state: QpState.RTS }), /still drain/);
    postSend(pair.a, qpA, send(8));
    pair.a.port.sendCredit = Infinity;
    pair.run(100);
    assert.deepEqual(pair.a.events, [AsyncEventType.SQ_DRAINED]);
    assert.equal(drain(pair.b.receiveCq).length, 1);
    qpA.modify({ state: QpState.RTS });
    pair.run(100);
    assert.equal(drain(pair.b.receiveCq).length, 1);
  });

  it('flushes in ERR, forgets in RESET, and works again', () => {
    const { pair, qpA, qpB } = connected();
    pair.a.port.sendCredit = 1;
    postReceive(pair.b, qpB, area(0), 1);
    postSend(pair.a, qpA, send(3 * MTU, 1));
    postSend(pair.a, qpA, send(8, 2));
    pair.settle();
    qpA.modify({ state: QpState.ERR });
    qpB.modify({ state: QpState.ERR });
    pair.a.port.sendCredit = Infinity;
    pair.run(100);
    assert.deepEqual(
      [...drain(pair.a.sendCq), ...drain(pair.b.receiveCq)].map((c) => c.status),
      [WR_FLUSH_ERR, WR_FLUSH_ERR, WR_FLUSH_ERR],
    );
    for (const qp of [qpA, qpB]) qp.modify({ state: QpState.RESET });
    connectUc(pair, qpA, qpB);
    postReceive(pair.b, qpB, area(0), 3);
    postSend(pair.a, qpA, send(8));
    pair.run(100);
    assert.equal(drain(pair.b.receiveCq)[0]?.cookie, 3);
    qpB.destroy();
    qpB.destroy();
    assert.ok(pair.a.driver.device.capabilities.has('uc'));
  });
});
