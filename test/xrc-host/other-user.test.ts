/** The host of an XRC domain, and a process of another user that knows its name. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { killAll, Program } from '../slots/programs.js';
import { leaveOut } from '../support/left-out.js';
import { paused } from '../support/patience.js';
import { device, hostNameOf, hostsOf, receiver, World } from './world.js';

const USER = 65_534;
const LOOK_MS = 20;

describe('The host of an XRC domain', function () {
  this.timeout(60_000);
  const world = new World(94);
  before(function () {
    if (process.getuid?.() !== 0) leaveOut(this, 'not run as root', 'run it as root');
  });
  afterEach(killAll);
  after(() => world.end());

  const strangerOf = (user: number): Program =>
    new Program({
      user,
      command: [process.execPath, join(import.meta.dirname, 'stranger.js')],
    });

  it('says nothing to another user, and carries on for its own', async () => {
    const { first, second, sender, srqns, address } = await world.reach();
    const name = hostNameOf(address);
    // What it would say to one that may ask.
    assert.equal(await strangerOf(0).ask(`call ${name}`), '{"answer":1}');
    const stranger = strangerOf(USER);
    for (let i = 0; i < 20; i++) assert.equal(await stranger.ask(`call ${name}`), 'end');
    assert.equal(await sender.ask(`send ${srqns[0]} on`), 'SUCCESS');
    assert.equal(await first.ask('received 1'), 'on');
    assert.equal(await sender.ask(`send ${srqns[1]} on`), 'SUCCESS');
    assert.equal(await second.ask('received 1'), 'on');
    assert.equal(hostsOf(address).length, 1);
  });

  it('whose name another user has taken: the error says whose it is', async () => {
    const [address, key] = [world.newAddress(), world.newKey()];
    const first = await receiver(address, key);
    const name = hostNameOf(address);
    await first.program.kill();
    while (hostsOf(address).length > 0) await paused(LOOK_MS);
    const stranger = strangerOf(USER);
    assert.equal(await stranger.ask(`listen ${name}`), 'listening');
    const second = await device(address);
    assert.match(await second.ask(`domain ${key}`), /^DAT_PRIVILEGES_VIOLATION.*user 65534's/);
    assert.equal(await second.ask(`domain ${world.newKey()}`), 'domain');
    await stranger.kill();
    assert.equal(await second.ask(`domain ${key}`), 'domain');
  });
});
