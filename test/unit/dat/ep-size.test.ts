/** What endpoints hold: there may be ten thousand. */
import assert from 'node:assert/strict';
import { QpState } from '../../../core/spi/index.js';
import { connected, unconnected } from '../../support/fake-endpoints.js';
import { heapBytes } from '../../support/heap.js';

const COUNT = 10_000;
/** Of the heap, beside the provider's queue pair and its rings. */
const MOST_BYTES = 1600;

describe('an endpoint', () => {
  it(`takes at most ${MOST_BYTES} bytes of the heap beside its queue pair`, async () => {
    const { ia, pz, evd, device } = await unconnected();
    const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
    const attributes = { maxRequestDtos: 4, maxRecvDtos: 2, maxRequestIov: 1, maxRecvIov: 1 };
    const whole = heapBytes(COUNT, () => ia.createEndpoint({ pz, ...evds, attributes }));
    const { init } = device.qp;
    const queuePair = heapBytes(COUNT, () => {
      const qp = device.createQueuePair({ ...init });
      qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: 0 });
      return qp;
    });
    const bytes = whole - queuePair;
    assert.ok(bytes > 0 && bytes <= MOST_BYTES, `${bytes} bytes`);
  });

  it('tells the watermarks that are armed', async () => {
    const { ep } = await connected();
    assert.deepEqual([ep.query().softWatermark, ep.query().hardWatermark], [Infinity, Infinity]);
    ep.setWatermark(3);
    assert.deepEqual([ep.query().softWatermark, ep.query().hardWatermark], [3, Infinity]);
    ep.setWatermark(Infinity);
    assert.deepEqual([ep.query().softWatermark, ep.query().hardWatermark], [Infinity, Infinity]);
  });

  it('has what it is made of in common with others that are made alike', async () => {
    const { ep, evd, ia } = await unconnected();
    const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
    const [one, two] = [0, 1].map(() => ia.createEndpoint({ pz: ep.pz, ...evds }));
    assert.equal(one!.attributes, two!.attributes);
    const attributes = { maxRequestDtos: 3 };
    const other = ia.createEndpoint({ pz: ep.pz, ...evds, attributes });
    assert.notEqual(other.attributes, two!.attributes);
    assert.equal(two?.attributes.maxRequestDtos === 3, false);
    const [pz, last] = [ia.createPz(), ia.createEndpoint({ pz: ep.pz, ...evds, attributes })];
    last.modify({ pz });
    assert.equal(other.pz, ep.pz, 'a change of one is none of the others');
    assert.equal(last.pz, pz);
    const own = [0, 1].map(() => ia.createEndpoint({ pz: ep.pz }).query());
    assert.notEqual(own[0]!.recvEvd, own[1]!.recvEvd, 'private event dispatchers are not shared');
    assert.notEqual(own[0]!.connectEvd, own[1]!.connectEvd);
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
