/** What endpoints hold: there may be ten thousand. */
import assert from 'node:assert/strict';
import type { Ep } from '../../../core/index.js';
import { connected, unconnected } from '../../support/fake-endpoints.js';

/** Names of the objects of an endpoint that it has made. */
function partsOf(ep: Ep): string[] {
  return Object.entries(ep)
    .filter(([, value]) => typeof value === 'object' && value !== null)
    .map(([name]) => name)
    .sort();
}

const PARTS = ['connection', 'core', 'counts', 'events', 'init', 'inside', 'queues'];

describe('an endpoint', () => {
  it('has watermarks while one is armed', async () => {
    const { ep } = await connected();
    assert.deepEqual(partsOf(ep), PARTS);
    assert.deepEqual([ep.query().softWatermark, ep.query().hardWatermark], [Infinity, Infinity]);
    ep.setWatermark(3);
    assert.deepEqual(partsOf(ep), [...PARTS, 'watermarks']);
    assert.deepEqual([ep.query().softWatermark, ep.query().hardWatermark], [3, Infinity]);
    ep.setWatermark(Infinity);
    assert.deepEqual(partsOf(ep), PARTS);
  });

  it('has what it is made of in common with others that are made alike', async () => {
    const { ep, evd, ia } = await unconnected();
    const init = (other: Ep): object => (other as unknown as { init: object }).init;
    const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
    const [one, two] = [0, 1].map(() => ia.createEndpoint({ pz: ep.pz, ...evds }));
    assert.equal(init(one!), init(two!));
    const attributes = { maxRequestDtos: 3 };
    const other = ia.createEndpoint({ pz: ep.pz, ...evds, attributes });
    assert.notEqual(init(other), init(two!));
    assert.equal(two?.attributes.maxRequestDtos === 3, false);
    const [pz, last] = [ia.createPz(), ia.createEndpoint({ pz: ep.pz, ...evds, attributes })];
    last.modify({ pz });
    assert.equal(other.pz, ep.pz, 'a change of one is none of the others');
    assert.equal(last.pz, pz);
    const own = [0, 1].map(() => ia.createEndpoint({ pz: ep.pz }));
    assert.notEqual(init(own[0]!), init(own[1]!), 'private event dispatchers are not shared');
  });

  it('tells its state from when somebody asks, also after its end', async () => {
    const { ep, cm, world } = await connected();
    const seen: string[] = [];
    const subscribe = (name: string): void => {
      ep.state$.subscribe({
        next: (state) => seen.push(`${name} ${state}`),
        complete: () => seen.push(`${name} ends`),
      });
    };
    subscribe('first');
    cm.connection.emit({ type: 'disconnected', byPeer: true });
    world.pump();
    subscribe('second');
    ep.free();
    world.pump();
    subscribe('late');
    assert.deepEqual(seen, [
      'first CONNECTED',
      'first DISCONNECTED',
      'second DISCONNECTED',
      'first ends',
      'second ends',
      'late DISCONNECTED',
      'late ends',
    ]);
    const never = await connected();
    never.ep.free();
    never.ep.state$.subscribe({ complete: () => seen.push('never ends') });
    assert.equal(seen.at(-1), 'never ends', 'nobody had asked before');
  });
});
