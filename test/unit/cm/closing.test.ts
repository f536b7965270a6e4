/** Closing the module: what is told, what is left, and for how long. */
import assert from 'node:assert/strict';
import { QpState } from '../../../core/spi/index.js';
import { CmPair, typesOf } from '../../support/cm-pair.js';

describe('CM: closing the module', () => {
  it('sends one DREQ for each live connection, and leaves nothing', async () => {
    const pair = new CmPair();
    const { active, passive } = await pair.established();
    const pending = pair.connect();
    await pair.world.runFor(1);
    const before = pair.messages.length;
    const closed = pair.a.close();
    assert.equal(pair.a.cm.close(), pair.a.cm.close());
    await pair.world.runFor(100_000);
    await closed;
    assert.deepEqual(pair.messages.slice(before).slice(0, 2).sort(), ['DREQ', 'REJ']);
    assert.deepEqual(typesOf(passive.events), ['established', 'disconnected']);
    assert.equal(active.qp.state, QpState.ERR);
    assert.deepEqual([active.events.length, pending.events.length], [1, 0]);
    assert.ok(pair.a.cm.isIdle);
    assert.throws(() => pair.connect(), /closed/);
    await pair.b.close();
    await pair.world.run();
    assert.equal(pair.world.activeTimers, 0);
  });

  it('rejects the requests that wait for their listener', async () => {
    const pair = new CmPair();
    pair.listen(() => undefined);
    const { events } = pair.connect();
    await pair.world.runFor(1_000);
    void pair.b.close();
    await pair.world.run();
    assert.deepEqual(typesOf(events), ['rejected']);
  });

  it('has the DREQs of more connections than QP1 has room for leave, too', async () => {
    const pair = new CmPair({ a: { mad: { sendDepth: 4 } } });
    pair.listen((request) => void pair.accept(request), 100);
    for (let i = 0; i < 50; i++) pair.connect();
    await pair.world.runFor(100_000);
    const closed = pair.a.close();
    await pair.world.runFor(100_000);
    await closed;
    assert.equal(pair.bodies('DREQ').length, 50);
    assert.equal(pair.bodies('DREP').length, 50);
  });

  it('is bounded when nothing leaves any more', async () => {
    const pair = new CmPair();
    const { active } = await pair.established();
    const { qp1 } = pair.a.device;
    assert.ok(qp1);
    qp1.holdCompletions = true;
    const begin = pair.world.now();
    let open = true;
    const closed = pair.a.close().then(() => (open = false));
    await pair.world.runFor(2_100_000);
    assert.equal(open, false);
    await closed;
    assert.ok(pair.world.now() - begin <= 2_100_000);
    assert.equal(active.connection.state, 'IDLE');
  });
});
