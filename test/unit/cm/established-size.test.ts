/** What established connections hold: there may be ten thousand. */
import assert from 'node:assert/strict';
import { type CmConnection, gidFromIp } from '../../../core/spi/index.js';
import { CmPair } from '../../support/cm-pair.js';

/** Names of the objects that a connection refers to itself, without what all share. */
function heldBy(connection: CmConnection): string[] {
  return Object.entries(connection)
    .filter(([name, value]) => name !== 'services' && typeof value === 'object' && value !== null)
    .map(([name]) => name)
    .sort();
}

describe('CM: an established connection', () => {
  it('has let go of its handshake and of its wait', async () => {
    const pair = new CmPair();
    const { active, passive } = await pair.established();
    const held = ['path', 'qpControl'];
    assert.deepEqual(heldBy(active.connection), held);
    assert.deepEqual(heldBy(passive.connection), held);
    active.connection.disconnect();
    await pair.world.runFor(100_000);
    assert.deepEqual(heldBy(active.connection), [...held, 'wait'], 'in timewait');
    await pair.world.run();
    assert.equal(active.connection.state, 'IDLE');
    assert.deepEqual(heldBy(active.connection), held);
    assert.deepEqual(heldBy(passive.connection), held);
  });

  it('shares the way to its peer with the others that lead there', async () => {
    const pair = new CmPair();
    const remoteGid = (pair.b.device.gids[0] ?? gidFromIp('10.0.0.2')).slice();
    const { active, passive } = await pair.established();
    const [one, two] = [pair.connect({ remoteGid }), pair.connect({ remoteGid })];
    assert.equal(one.connection.remoteGid, active.connection.remoteGid);
    assert.equal(two.connection.remoteGid, active.connection.remoteGid);
    const elsewhere = pair.connect({ remoteGid: gidFromIp('10.0.0.9') });
    assert.deepEqual(elsewhere.connection.remoteGid, gidFromIp('10.0.0.9'));
    remoteGid.fill(0);
    assert.deepEqual(one.connection.remoteGid, gidFromIp('10.0.0.2'), 'not the consumer’s bytes');
    const there: CmConnection[] = [passive.connection];
    const listener = pair.listen((request) => there.push(pair.accept(request).connection));
    await pair.world.runFor(1_000_000);
    listener.close();
    assert.deepEqual(new Set(there.map(({ remoteGid: gid }) => gid)).size, 1);
    assert.equal(there.length, 3);
  });
});
