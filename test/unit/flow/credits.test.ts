import assert from 'node:assert/strict';
import { Credits, FlowError } from '../../../core/flow/index.js';
import { failureOf } from '../../support/flow-scene.js';
import { VirtualWorld } from '../../support/virtual-world.js';

function credits(initial: number, limit?: number): { world: VirtualWorld; credits: Credits } {
  const world = new VirtualWorld();
  return { world, credits: new Credits({ clock: world, timers: world }, initial, limit) };
}

describe('flow: credits', () => {
  it('are taken one by one, and never below 0', () => {
    const { credits: two } = credits(2);
    assert.deepEqual([two.tryTake(), two.tryTake(), two.tryTake()], [true, true, false]);
    assert.equal(two.available, 0);
  });

  it('go to those that wait, in order, and to nothing that has come later', async () => {
    const { credits: none } = credits(0);
    const order: number[] = [];
    const takers = [1, 2].map((n) => none.take().then(() => order.push(n)));
    assert.equal(none.tryTake(), false);
    none.give(1);
    assert.equal(none.tryTake(), false);
    await takers[0];
    assert.deepEqual(order, [1]);
    none.give(2);
    await takers[1];
    assert.equal(none.available, 1);
  });

  it('are not lost with a wait that has ended', async () => {
    const { world, credits: none } = credits(0);
    const late = failureOf(none.take({ timeoutMs: 3 }));
    await world.run();
    assert.match((await late).message, /the peer has given no credit/);
    none.give(1);
    assert.equal(none.available, 1);
  });

  it('refuse amounts that cannot be, and change nothing then', () => {
    const { credits: some } = credits(3, 5);
    assert.throws(() => some.give(3), {
      code: 'DAT_INVALID_PARAMETER',
      message: /3 credits and 3 more are above the limit of 5/,
    });
    assert.throws(() => some.give(-1), { code: 'DAT_INVALID_PARAMETER' });
    assert.throws(() => some.give(0.5), { code: 'DAT_INVALID_PARAMETER' });
    assert.throws(() => credits(-1), { code: 'DAT_INVALID_PARAMETER' });
    assert.equal(some.available, 3);
  });

  it('end: waits, and later calls', async () => {
    const { credits: none } = credits(0);
    const waiting = failureOf(none.take());
    none.end((operation) => new FlowError('DAT_CONN_CLOSED', { operation, message: 'over' }));
    assert.equal((await waiting).code, 'DAT_CONN_CLOSED');
    assert.equal((await failureOf(none.take())).code, 'DAT_CONN_CLOSED');
    none.give(1);
    assert.equal(none.tryTake(), false);
  });
});
