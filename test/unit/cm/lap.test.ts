/** Alternate paths: asked for, and refused; a RoCE port has none. */
import assert from 'node:assert/strict';
import { gidFromIp } from '../../../core/spi/index.js';
import { AP_STATUS, type CmLap } from '../../../plugins/cm/wire/lap.js';
import { CmPair } from '../../support/cm-pair.js';

const lapOf = (ids: Pick<CmLap, 'localCommId' | 'remoteCommId' | 'remoteQpn'>): CmLap => ({
  ...ids,
  remoteCmResponseTimeout: 20,
  alternateLocalLid: 1,
  alternateRemoteLid: 2,
  alternateLocalGid: gidFromIp('10.0.1.1'),
  alternateRemoteGid: gidFromIp('10.0.1.2'),
  alternateFlowLabel: 0,
  alternateTrafficClass: 0,
  alternateHopLimit: 64,
  alternatePacketRate: 0,
  alternateSl: 0,
  alternateSubnetLocal: 0,
  alternateLocalAckTimeout: 18,
  privateData: new Uint8Array(0),
});

describe('CM: LAP', () => {
  it('is answered by APR: unsupported, ids crossed, and the connection stays', async () => {
    const pair = new CmPair();
    const { active, passive } = await pair.established();
    const [rep] = pair.bodies('REP');
    assert.ok(rep);
    const ids = { localCommId: rep.remoteCommId, remoteCommId: rep.localCommId };
    const body = lapOf({ ...ids, remoteQpn: passive.qp.qpn });
    for (let i = 0; i < 2; i++) pair.inject(pair.b, { name: 'LAP', body });
    await pair.world.runFor(1_000);
    for (const apr of pair.bodies('APR')) {
      assert.equal(apr.apStatus, AP_STATUS.UNSUPPORTED);
      assert.deepEqual([apr.localCommId, apr.remoteCommId], [rep.localCommId, rep.remoteCommId]);
    }
    assert.equal(pair.bodies('APR').length, 2);
    assert.equal(passive.connection.state, 'ESTABLISHED');
    // The APR belongs to nothing that the other side asked: counted, no more.
    assert.equal(pair.a.cm.counters.unexpected, 2);
    assert.equal(active.connection.state, 'ESTABLISHED');
  });

  it('echoes the transaction id of the LAP', async () => {
    const pair = new CmPair();
    const { passive } = await pair.established();
    const [rep] = pair.bodies('REP');
    assert.ok(rep);
    const ids = { localCommId: rep.remoteCommId, remoteCommId: rep.localCommId };
    pair.inject(pair.b, { name: 'LAP', body: lapOf({ ...ids, remoteQpn: passive.qp.qpn }) });
    await pair.world.runFor(1_000);
    const mad = pair.network.carried.at(-1)?.data;
    assert.ok(mad);
    const view = new DataView(mad.buffer, mad.byteOffset);
    assert.deepEqual([view.getUint32(8), view.getUint32(12), view.getUint16(16)], [7, 7, 0x1a]);
  });

  it('names what is wrong: no such connection, another queue pair', async () => {
    const pair = new CmPair();
    const { passive } = await pair.established();
    const [rep] = pair.bodies('REP');
    assert.ok(rep);
    const ids = { localCommId: rep.remoteCommId, remoteCommId: rep.localCommId };
    const unknown = lapOf({ localCommId: 5, remoteCommId: 6, remoteQpn: 9 });
    pair.inject(pair.b, { name: 'LAP', body: unknown });
    const elsewhere = lapOf({ ...ids, remoteQpn: passive.qp.qpn + 1 });
    pair.inject(pair.b, { name: 'LAP', body: elsewhere });
    await pair.world.runFor(1_000);
    const [first, second] = pair.bodies('APR');
    assert.equal(first?.apStatus, AP_STATUS.INVALID_COMM_ID);
    assert.deepEqual([first.localCommId, first.remoteCommId], [6, 5]);
    assert.equal(second?.apStatus, AP_STATUS.INVALID_QPN);
  });

  it('of a third party is dropped, and a flood for nobody is bounded', async () => {
    const pair = new CmPair({ b: { cm: { requestsPerSecond: 1, requestBurst: 3 } } });
    const { passive } = await pair.established();
    const [rep] = pair.bodies('REP');
    assert.ok(rep);
    const ids = { localCommId: rep.remoteCommId, remoteCommId: rep.localCommId };
    const body = lapOf({ ...ids, remoteQpn: passive.qp.qpn });
    pair.inject(pair.b, { name: 'LAP', body }, gidFromIp('10.0.0.77'));
    await pair.world.runFor(10);
    assert.equal(pair.b.cm.counters.wrongSource, 1);
    assert.deepEqual(pair.bodies('APR'), []);
    const unknown = lapOf({ localCommId: 5, remoteCommId: 6, remoteQpn: 9 });
    for (let i = 0; i < 10; i++) pair.inject(pair.b, { name: 'LAP', body: unknown });
    await pair.world.runFor(10);
    assert.equal(pair.bodies('APR').length, 2);
  });
});
