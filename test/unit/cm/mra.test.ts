/** MRA: "wait longer", of the peer's. Our own is in refusals.test.ts. */
import assert from 'node:assert/strict';
import { CmPair, messageName } from '../../support/cm-pair.js';

const NONE = new Uint8Array(0);

describe('CM: MRA', () => {
  it('of the peer extends the wait for REP', async () => {
    const pair = new CmPair();
    pair.network.fate = (parcel) => (parcel.from === pair.a.device ? [] : [10]);
    const { connection } = pair.connect();
    const [req] = pair.bodies('REQ');
    assert.ok(req);
    const body = {
      localCommId: 77,
      remoteCommId: req.localCommId,
      messageMraed: 0,
      serviceTimeout: 22,
      privateData: NONE,
    };
    pair.inject(pair.a, { name: 'MRA', body });
    await pair.world.runFor(17_000_000);
    assert.equal(connection.state, 'MRA_REQ_RCVD');
    assert.deepEqual(pair.messages, ['REQ']);
    await pair.world.runFor(2_000_000);
    assert.deepEqual(pair.messages, ['REQ', 'REQ']);
  });

  it('of the peer extends the wait for RTU', async () => {
    const pair = new CmPair();
    pair.network.fate = (parcel) => (messageName(parcel) === 'RTU' ? [] : [10]);
    const { passive } = await pair.established();
    const [rep] = pair.bodies('REP');
    assert.ok(rep);
    const body = {
      localCommId: rep.remoteCommId,
      remoteCommId: rep.localCommId,
      messageMraed: 1,
      serviceTimeout: 21,
      privateData: NONE,
    };
    pair.inject(pair.b, { name: 'MRA', body });
    await pair.world.runFor(8_000_000);
    assert.equal(passive.connection.state, 'MRA_REP_RCVD');
    assert.equal(pair.bodies('REP').length, 1);
    await pair.world.runFor(3_000_000);
    assert.equal(pair.bodies('REP').length, 2);
  });
});
