/** The host of an XRC domain, or a consumer, is stopped for a while (SIGSTOP); so is none other. */
import assert from 'node:assert/strict';
import { killAll } from '../slots/programs.js';
import { paused } from '../support/patience.js';
import { attached, hostsOf, World } from './world.js';

/** Of the peers' own retries: less than all of them take. */
const STOPPED_MS = 100;
/** Receives of a test program's queue. */
const RECEIVES = 16;

describe('XRC domains: a process is stopped, and goes on', function () {
  this.timeout(300_000);
  const world = new World(91);
  afterEach(killAll);
  after(() => world.end());

  it('the host: calls wait for it, and what was sent meanwhile arrives once', async () => {
    const { first, sender, srqns, target, address } = await world.reach();
    const [host] = hostsOf(address);
    process.kill(host!, 'SIGSTOP');
    const state = first.ask(`query ${target}`);
    const sent = sender.ask(`send ${srqns[0]} meanwhile`);
    await paused(STOPPED_MS);
    process.kill(host!, 'SIGCONT');
    assert.equal(await state, 'RTR');
    assert.equal(await sent, 'SUCCESS');
    assert.equal(await first.ask('received 1'), 'meanwhile');
  });

  it('a consumer: its queue runs dry and its sender waits, and no other', async () => {
    const { first, second, sender, srqns, address } = await world.reach();
    const other = await attached(second, address, world.newAddress());
    first.signal('SIGSTOP');
    const texts = Array.from({ length: RECEIVES + 1 }, (_, n) => `text${n}`);
    for (const text of texts.slice(0, -1)) {
      assert.equal(await sender.ask(`send ${srqns[0]} ${text}`), 'SUCCESS');
    }
    const waiting = sender.ask(`send ${srqns[0]} ${texts.at(-1)}`);
    for (let n = 1; n <= 2 * RECEIVES; n++) {
      assert.equal(await other.sender.ask(`send ${srqns[1]} other${n}`), 'SUCCESS');
    }
    assert.equal((await second.ask(`received ${2 * RECEIVES}`)).split(',').length, 2 * RECEIVES);
    first.signal('SIGCONT');
    assert.equal(await waiting, 'SUCCESS');
    assert.deepEqual((await first.ask(`received ${texts.length}`)).split(','), texts);
  });

  it('a stopped consumer is killed: the target lives for the others', async () => {
    const { first, second, sender, srqns, target, address } = await world.reach();
    assert.equal(await second.ask(`register ${target}`), 'registered');
    first.signal('SIGSTOP');
    await first.kill();
    assert.equal(await second.ask(`query ${target}`), 'RTR');
    assert.equal(await sender.ask(`send ${srqns[1]} still`), 'SUCCESS');
    assert.equal(await second.ask('received 1'), 'still');
    assert.equal(await sender.ask(`send ${srqns[0]} late`), 'REMOTE_RESPONDER');
    assert.equal(hostsOf(address).length, 1);
  });
});
