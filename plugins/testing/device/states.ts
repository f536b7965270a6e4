/** States of queue pairs (IBTA 10.3.1), and which requests each state processes. */
import assert from 'node:assert/strict';
import { QpState } from 'dapl/spi';
import { deviceGroup } from './world.js';

export const states = deviceGroup('States', (claim) => {
  claim('a queue pair goes from RESET by INIT and RTR to RTS', (world) => {
    const { a, b } = world.ends();
    assert.equal(a.qp.state, QpState.INIT);
    a.toRtr(b);
    assert.equal(a.qp.state, QpState.RTR);
    a.toRts();
    assert.equal(a.qp.state, QpState.RTS);
    assert.equal(a.qp.query().destinationQpn, b.qp.qpn);
  });

  claim('a transition that there is not is refused, and changes nothing', (world) => {
    const { a } = world.ends();
    assert.throws(() => a.qp.modify({ state: QpState.RTS, sendPsn: 1 }), { code: 'EINVAL' });
    assert.throws(() => a.qp.modify({ state: QpState.SQD }), { code: 'EINVAL' });
    assert.equal(a.qp.state, QpState.INIT);
  });

  claim('an attribute that is missing is named', (world) => {
    const { a } = world.ends();
    assert.throws(() => a.qp.modify({ state: QpState.RTR }), { code: 'EINVAL' });
    assert.equal(a.qp.state, QpState.INIT);
  });

  claim('a send before RTS waits, and leaves when its doorbell is rung again', async (world) => {
    const { a, b } = world.ends();
    b.toRtr(a);
    b.toRts();
    b.receive({ offset: 0, length: 64 });
    a.toRtr(b);
    a.send({ pieces: [{ offset: 0, length: 8 }] });
    await world.quiet();
    assert.deepEqual([...a.take(), ...b.take()], []);
    a.toRts();
    a.qp.ringSendDoorbell();
    assert.deepEqual(await world.statuses(a, 1), ['SUCCESS']);
    assert.deepEqual(await world.statuses(b, 1), ['SUCCESS']);
  });

  claim('a receive in RESET waits until its doorbell is rung again', async (world) => {
    const { a } = world.ends();
    const { b } = world.ends();
    a.qp.modify({ state: QpState.RESET });
    a.receive({ offset: 0, length: 64, cookie: 8 });
    assert.equal(a.qp.receiveRing?.consumer, 0);
    a.toInit();
    a.qp.ringReceiveDoorbell();
    for (const [end, peer] of [
      [a, b],
      [b, a],
    ] as const) {
      end.toRtr(peer);
      end.toRts();
    }
    b.send({ pieces: [{ offset: 0, length: 8 }] });
    assert.deepEqual(
      (await world.completions(a, 1)).map(({ cookie }) => cookie),
      [8],
    );
    await world.completions(b, 1);
  });

  claim('ERR flushes sends and receives, each queue in order', async (world) => {
    const { a } = world.connected();
    a.receive(...[1, 2, 3].map((cookie) => ({ offset: 0, length: 64, cookie })));
    a.qp.modify({ state: QpState.ERR });
    a.send({ cookie: 11 }, { cookie: 12, signalled: false }, { cookie: 13 });
    const taken = await world.completions(a, 6);
    assert.ok(
      taken.every(({ status }) => status === 5),
      'WR_FLUSH_ERR',
    );
    const of = (isReceive: boolean): number[] =>
      taken.filter(({ opcode }) => opcode >= 128 === isReceive).map(({ cookie }) => cookie);
    assert.deepEqual(of(true), [1, 2, 3]);
    assert.deepEqual(of(false), [11, 12, 13]);
  });

  claim('RESET discards without completions, and the queue pair is used again', async (world) => {
    const { a, b } = world.connected();
    a.receive({ offset: 0, length: 64, cookie: 1 });
    a.qp.modify({ state: QpState.RESET });
    b.qp.modify({ state: QpState.RESET });
    await world.quiet();
    assert.deepEqual(a.take(), []);
    for (const [end, peer] of [
      [a, b],
      [b, a],
    ] as const) {
      end.toInit();
      end.toRtr(peer);
      end.toRts();
    }
    b.receive({ offset: 0, length: 64, cookie: 2 });
    a.send({ pieces: [{ offset: 0, length: 4 }] });
    assert.deepEqual(
      (await world.completions(b, 1)).map(({ cookie }) => cookie),
      [2],
    );
    assert.deepEqual(await world.statuses(a, 1), ['SUCCESS']);
    a.receive({ offset: 0, length: 64, cookie: 3 });
    b.send({ pieces: [{ offset: 0, length: 4 }] });
    assert.deepEqual(
      (await world.completions(a, 1)).map(({ cookie, index }) => [cookie, index]),
      [[3, 1]],
      'indices go on from where they are',
    );
    await world.completions(b, 1);
  });
});
