/** Messages that are late, or say that they answer something else: they end and extend nothing. */
import assert from 'node:assert/strict';
import { CmPair, type Side, typesOf } from '../../support/cm-pair.js';

const NONE = new Uint8Array(0);
const REJ = { rejectInfoLength: 0, additionalRejectInfo: NONE, privateData: NONE } as const;
const [REQ_REJECTED, REP_REJECTED] = [0, 1];
const [REQ_MRAED, REP_MRAED, LAP_MRAED] = [0, 1, 2];

/** An active side that waits for REP, and nobody who answers. */
function asking(pair: CmPair): { side: Side; remoteCommId: number } {
  pair.network.fate = (parcel) => (parcel.from === pair.a.device ? [] : [10]);
  const side = pair.connect();
  const [req] = pair.bodies('REQ');
  assert.ok(req);
  return { side, remoteCommId: req.localCommId };
}

describe('CM: strays', () => {
  for (const reason of [8, 10, 28]) {
    it(`a late REJ ${reason} of an earlier copy of the REQ does not end a connection`, async () => {
      const pair = new CmPair();
      const { active } = await pair.established();
      const [req] = pair.bodies('REQ');
      assert.ok(req);
      const ids = { localCommId: 0, remoteCommId: req.localCommId };
      const body = { ...REJ, ...ids, messageRejected: REQ_REJECTED, reason };
      pair.inject(pair.a, { name: 'REJ', body });
      await pair.world.runFor(1_000);
      assert.equal(active.connection.state, 'ESTABLISHED');
      assert.deepEqual(typesOf(active.events), ['established']);
      assert.equal(pair.a.cm.counters.unknownConnection, 1);
    });
  }

  it('a REJ of a REQ does not end the side that never sent one', async () => {
    const pair = new CmPair();
    const { passive } = await pair.established();
    const [rep] = pair.bodies('REP');
    assert.ok(rep);
    const ids = { localCommId: 0, remoteCommId: rep.localCommId };
    const body = { ...REJ, ...ids, messageRejected: REQ_REJECTED, reason: 28 };
    pair.inject(pair.b, { name: 'REJ', body });
    await pair.world.runFor(1_000);
    assert.equal(passive.connection.state, 'ESTABLISHED');
  });

  it('a REJ that follows an MRA has the rejecter’s id, and is taken for the answer', async () => {
    const pair = new CmPair();
    const { side, remoteCommId } = asking(pair);
    const ids = { localCommId: 77, remoteCommId, privateData: NONE };
    const mra = { ...ids, messageMraed: REQ_MRAED, serviceTimeout: 20 };
    pair.inject(pair.a, { name: 'MRA', body: mra });
    const rej = { ...REJ, ...ids, messageRejected: REQ_REJECTED, reason: 28 };
    pair.inject(pair.a, { name: 'REJ', body: rej });
    await pair.world.runFor(1_000);
    assert.deepEqual(typesOf(side.events), ['rejected']);
  });

  for (const [name, messageMraed] of [
    ['REP', REP_MRAED],
    ['LAP', LAP_MRAED],
    ['nothing known', 3],
  ] as const) {
    it(`an MRA of ${name} does not extend the wait for REP`, async () => {
      const pair = new CmPair();
      const { side, remoteCommId } = asking(pair);
      const ids = { localCommId: 77, remoteCommId, privateData: NONE };
      const body = { ...ids, messageMraed, serviceTimeout: 24 };
      pair.inject(pair.a, { name: 'MRA', body });
      await pair.world.runFor(1_000);
      assert.equal(side.connection.state, 'REQ_SENT');
      assert.equal(pair.a.cm.counters.unexpected, 1);
      await pair.world.runFor(600_000);
      assert.deepEqual(pair.messages, ['REQ', 'REQ']);
    });
  }

  it('an MRA of REQ does not extend the wait for RTU', async () => {
    const pair = new CmPair();
    pair.tamper('RTU', 1, []);
    const { passive } = await pair.established();
    const [rep] = pair.bodies('REP');
    assert.ok(rep);
    const ids = { localCommId: rep.remoteCommId, remoteCommId: rep.localCommId };
    const body = { ...ids, messageMraed: REQ_MRAED, serviceTimeout: 24, privateData: NONE };
    pair.inject(pair.b, { name: 'MRA', body });
    await pair.world.runFor(1_000);
    assert.equal(passive.connection.state, 'REP_SENT');
    await pair.world.runFor(600_000);
    assert.equal(passive.connection.state, 'ESTABLISHED', 'by RTU for the repeated REP');
  });

  it('a REJ of a REP ends the passive side that waits for RTU', async () => {
    const pair = new CmPair();
    pair.tamper('RTU', 1, []);
    const { passive } = await pair.established();
    const [rep] = pair.bodies('REP');
    assert.ok(rep);
    const ids = { localCommId: rep.remoteCommId, remoteCommId: rep.localCommId };
    const body = { ...REJ, ...ids, messageRejected: REP_REJECTED, reason: 28 };
    pair.inject(pair.b, { name: 'REJ', body });
    await pair.world.runFor(1_000);
    assert.deepEqual(typesOf(passive.events), ['accept-failed']);
  });
});
