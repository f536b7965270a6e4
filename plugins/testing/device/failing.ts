/** Requests that fail, and the requests before and after them. */
import assert from 'node:assert/strict';
import { nameOf, QpState, WcOpcode, WcStatus, WrOpcode } from 'dapl/spi';
import { deviceGroup } from './world.js';

/** An opcode that does not exist. */
const NO_OPCODE = 0x7f;

export const failing = deviceGroup('Failing', (claim) => {
  claim('what is before the failed request succeeds, what is behind is flushed', async (world) => {
    const { a, b } = world.connected();
    b.receive(...[1, 2, 3, 4].map((cookie) => ({ offset: 0, length: 64, cookie })));
    const pieces = [{ offset: 0, length: 8 }];
    const bad = [{ offset: 0, length: 8, lkey: a.region.lkey ^ 0x5a5a }];
    a.send(
      { pieces, cookie: 1 },
      { pieces: bad, cookie: 2 },
      { pieces, cookie: 3 },
      { pieces, cookie: 4, signalled: false },
    );
    assert.deepEqual(await world.statuses(a, 4), [
      'SUCCESS',
      'LOC_PROT_ERR',
      'WR_FLUSH_ERR',
      'WR_FLUSH_ERR',
    ]);
    assert.equal(a.qp.state, QpState.ERR);
    await world.quiet();
    assert.equal(b.take().filter(({ status }) => status === 0).length, 1);
  });

  claim('receives of the failed queue pair are flushed', async (world) => {
    const { a } = world.connected();
    a.receive(...[1, 2, 3].map((cookie) => ({ offset: 0, length: 64, cookie })));
    a.send({ pieces: [{ offset: 0, length: 8, lkey: a.region.lkey ^ 0x5a5a }], cookie: 9 });
    const taken = await world.completions(a, 4);
    const flushed = taken.filter(({ opcode }) => opcode >= 128).map(({ cookie }) => cookie);
    assert.deepEqual(flushed, [1, 2, 3]);
  });

  claim('a request that fails unsignalled completes', async (world) => {
    const { a } = world.connected();
    const pieces = [{ offset: 0, length: 8, lkey: a.region.lkey ^ 0x5a5a }];
    a.send({ pieces, signalled: false, cookie: 3 });
    assert.deepEqual(
      (await world.completions(a, 1)).map(({ cookie }) => cookie),
      [3],
    );
  });

  claim('an operation that there is not completes as LOC_QP_OP_ERR, in its turn', async (world) => {
    const { a, b } = world.connected();
    b.receive({ offset: 0, length: 64 });
    const pieces = [{ offset: 0, length: 8 }];
    a.send({ pieces, cookie: 1 }, { opcode: NO_OPCODE, pieces, cookie: 2 }, { pieces, cookie: 3 });
    const taken = await world.completions(a, 3);
    assert.deepEqual(
      taken.map(({ cookie }) => cookie),
      [1, 2, 3],
    );
    // When a driver refuses a request, it flushes those that it still holds.
    const [, refused, flushed] = taken.map(({ status }) => nameOf(WcStatus, status));
    assert.deepEqual([refused, flushed], ['LOC_QP_OP_ERR', 'WR_FLUSH_ERR']);
  });

  claim('a receive too small fails on both sides', async (world) => {
    const { a, b } = world.connected();
    b.receive({ offset: 0, length: 8 });
    a.send({ pieces: [{ offset: 0, length: 64 }] });
    const [sent] = await world.statuses(a, 1);
    const [received] = await world.statuses(b, 1);
    assert.ok(sent === 'REM_INV_REQ_ERR' || sent === 'REM_OP_ERR', sent);
    assert.ok(received === 'LOC_LEN_ERR', received);
    assert.ok(
      b.memory.subarray(8, 64).every((byte) => byte === 0),
      'bytes beyond the receive',
    );
  });

  claim('a queue pair that is gone leaves nothing behind it but what was read', async (world) => {
    const { a, b } = world.connected();
    b.receive({ offset: 0, length: 64, cookie: 1 }, { offset: 0, length: 64, cookie: 2 });
    a.send({ pieces: [{ offset: 0, length: 8 }] });
    await world.completions(b, 1);
    b.qp.destroy();
    await world.quiet();
    assert.ok(!b.take().some(({ status }) => status === 0));
    assert.equal(b.cq.ring.length, 0);
  });

  claim('a flushed request tells what it was', async (world) => {
    const { a, b } = world.connected();
    const remote = { address: b.address(), rkey: b.region.rkey };
    a.qp.modify({ state: QpState.ERR });
    a.send(
      { opcode: WrOpcode.RDMA_WRITE, remote },
      { opcode: WrOpcode.SEND_WITH_IMM },
      { opcode: WrOpcode.RDMA_WRITE_WITH_IMM, remote },
    );
    a.receive({ offset: 0, length: 8 });
    const opcodes = (await world.completions(a, 4)).map(({ opcode }) => opcode);
    assert.deepEqual(opcodes.sort(), [
      WcOpcode.SEND,
      WcOpcode.RDMA_WRITE,
      WcOpcode.RDMA_WRITE,
      WcOpcode.RECV,
    ]);
  });

  claim('work in ERR is flushed at once', async (world) => {
    const { a } = world.connected();
    a.qp.modify({ state: QpState.ERR });
    a.send({ opcode: WrOpcode.SEND, cookie: 1 });
    a.receive({ offset: 0, length: 8, cookie: 2 });
    assert.deepEqual(await world.statuses(a, 2), ['WR_FLUSH_ERR', 'WR_FLUSH_ERR']);
  });
});
