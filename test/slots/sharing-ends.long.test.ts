/** Programs that share an address when some of them are killed or stopped. */
import assert from 'node:assert/strict';
import { gidFromIp, silentLogger } from '../../core/spi/index.js';
import { joinSharedAddress } from '../../providers/softroce/socket-port.js';
import { paused } from '../support/patience.js';
import { loopback } from '../support/loopback.js';
import { killAll, opened, Program } from './programs.js';

const UDP_PORT = 4791;
/** By a DREQ: nothing else is sent on an idle connection without signs of life. */
const ENDED = 'DAT_CONN_ENDED';
let hosts = 1;

/** An address of its own for each case: a name that rests from one is not met by another. */
const newAddress = (): string => loopback(94, hosts++);

describe('softroce: programs that share an address are killed and stopped', function () {
  this.timeout(120_000);
  afterEach(killAll);

  it('peers of a killed program learn of it at once; the others go on', async () => {
    const [shared, other] = [newAddress(), newAddress()];
    const first = await opened(shared, UDP_PORT);
    const victim = await opened(shared, UDP_PORT);
    const outside = await opened(other, UDP_PORT, 'alone');
    await first.ask('listen 1001');
    await victim.ask('listen 1002');
    const toFirst = await outside.ask(`connect ${shared} 1001`);
    const toVictim = await outside.ask(`connect ${shared} 1002`);
    assert.equal(await outside.ask(`echo ${toVictim} 5`), 'echoed');
    await victim.kill();
    assert.equal(await outside.ask(`ended ${toVictim}`), ENDED);
    assert.equal(await outside.ask(`echo ${toFirst} 50`), 'echoed');
    const next = await opened(shared, UDP_PORT);
    await next.ask('listen 1002');
    const again = await outside.ask(`connect ${shared} 1002`);
    assert.equal(await outside.ask(`echo ${again} 50`), 'echoed');
  });

  it('the first one is killed: data flows on, and another takes its place', async () => {
    const [shared, other] = [newAddress(), newAddress()];
    const broker = await opened(shared, UDP_PORT);
    const second = await opened(shared, UDP_PORT);
    const third = await opened(shared, UDP_PORT);
    const outside = await opened(other, UDP_PORT, 'alone');
    await broker.ask('listen 1000');
    await second.ask('listen 1001');
    await third.ask('listen 1002');
    const toBroker = await outside.ask(`connect ${shared} 1000`);
    const toSecond = await outside.ask(`connect ${shared} 1001`);
    const toThird = await outside.ask(`connect ${shared} 1002`);
    await broker.kill();
    assert.equal(await outside.ask(`echo ${toSecond} 50`), 'echoed');
    assert.equal(await outside.ask(`echo ${toThird} 50`), 'echoed');
    assert.equal(await outside.ask(`ended ${toBroker}`), ENDED);
    const fourth = await opened(shared, UDP_PORT);
    await fourth.ask('listen 1000');
    for (const port of [1000, 1001, 1002]) {
      const number = await outside.ask(`connect ${shared} ${port}`);
      assert.equal(await outside.ask(`echo ${number} 20`), 'echoed');
    }
  });

  it('the first one and another are killed at once: the third goes on where it was', async () => {
    const [shared, other] = [newAddress(), newAddress()];
    const broker = await opened(shared, UDP_PORT);
    const victim = await opened(shared, UDP_PORT);
    const third = await opened(shared, UDP_PORT);
    const outside = await opened(other, UDP_PORT, 'alone');
    await victim.ask('listen 1001');
    await third.ask('listen 1002');
    const toVictim = await outside.ask(`connect ${shared} 1001`);
    const toThird = await outside.ask(`connect ${shared} 1002`);
    broker.signal('SIGKILL');
    await Promise.all([victim.kill(), broker.kill()]);
    assert.equal(await outside.ask(`echo ${toThird} 50`), 'echoed');
    assert.equal(await outside.ask(`ended ${toVictim}`), ENDED);
    const next = await opened(shared, UDP_PORT);
    await next.ask('listen 1001');
    const again = await outside.ask(`connect ${shared} 1001`);
    assert.equal(await outside.ask(`echo ${again} 20`), 'echoed');
  });

  it('one that is stopped holds up no other, and goes on', async () => {
    const [shared, other] = [newAddress(), newAddress()];
    const first = await opened(shared, UDP_PORT);
    const stopped = await opened(shared, UDP_PORT);
    const outside = await opened(other, UDP_PORT, 'alone');
    await stopped.ask('listen 1001');
    const toStopped = await outside.ask(`connect ${shared} 1001`);
    stopped.signal('SIGSTOP');
    const third = await opened(shared, UDP_PORT);
    await third.ask('listen 1002');
    await first.kill();
    const toThird = await outside.ask(`connect ${shared} 1002`);
    assert.equal(await outside.ask(`echo ${toThird} 50`), 'echoed');
    stopped.signal('SIGCONT');
    assert.equal(await outside.ask(`echo ${toStopped} 20`), 'echoed');
    const fourth = await opened(shared, UDP_PORT);
    await fourth.ask('listen 1003');
    assert.match(await stopped.ask('listen 1003'), /DAT_CONN_QUAL_IN_USE/);
  });

  it('one that opens while the first one is stopped is told so; connections go on', async () => {
    const [shared, other] = [newAddress(), newAddress()];
    const broker = await opened(shared, UDP_PORT);
    const second = await opened(shared, UDP_PORT);
    const outside = await opened(other, UDP_PORT, 'alone');
    await second.ask('listen 1001');
    const number = await outside.ask(`connect ${shared} 1001`);
    broker.signal('SIGSTOP');
    const third = new Program();
    const said = await third.ask(`open ${shared} ${UDP_PORT}`);
    assert.match(said, /DAT_TIMEOUT_EXPIRED.*does not answer.*SIGSTOP/);
    assert.equal(await outside.ask(`echo ${number} 20`), 'echoed');
    broker.signal('SIGCONT');
    assert.equal(await third.ask(`open ${shared} ${UDP_PORT}`), 'open');
    assert.equal(await third.ask('listen 1002'), 'listening');
  });

  it('the first one is stopped: others close, listen and are killed meanwhile', async () => {
    const [shared, other] = [newAddress(), newAddress()];
    const broker = await opened(shared, UDP_PORT);
    const second = await opened(shared, UDP_PORT);
    const third = await opened(shared, UDP_PORT);
    const victim = await opened(shared, UDP_PORT);
    const outside = await opened(other, UDP_PORT, 'alone');
    await victim.ask('listen 1004');
    const toVictim = await outside.ask(`connect ${shared} 1004`);
    broker.signal('SIGSTOP');
    assert.equal(await second.ask('listen 1002'), 'listening');
    assert.equal(await third.ask('close'), 'closed');
    await victim.kill();
    // Who asks for a connection waits for the broker.
    const connecting = outside.ask(`connect ${shared} 1002`, 60_000);
    await paused(500);
    broker.signal('SIGCONT');
    const toSecond = await connecting;
    assert.equal(await outside.ask(`echo ${toSecond} 20`), 'echoed');
    assert.equal(await outside.ask(`ended ${toVictim}`), ENDED);
    assert.equal(await third.ask(`open ${shared} ${UDP_PORT}`), 'open');
    assert.equal(await third.ask('listen 1004'), 'listening');
  });

  it('one is stopped while others open and close, and the first one is killed', async () => {
    const [shared, other] = [newAddress(), newAddress()];
    const broker = await opened(shared, UDP_PORT);
    const stopped = await opened(shared, UDP_PORT);
    const second = await opened(shared, UDP_PORT);
    const outside = await opened(other, UDP_PORT, 'alone');
    await stopped.ask('listen 1001');
    const toStopped = await outside.ask(`connect ${shared} 1001`);
    const options = { gids: [gidFromIp(shared)], udpPort: UDP_PORT, logger: silentLogger };
    const opensAndCloses = async (): Promise<void> => {
      for (let i = 0; i < 20; i++) {
        (await joinSharedAddress({ ...options, port: 'native' })).leave();
      }
    };
    stopped.signal('SIGSTOP');
    // More than there have been at a time: the stopped one is told of places that are new.
    await Promise.all(Array.from({ length: 8 }, opensAndCloses));
    await broker.kill();
    await Promise.all(Array.from({ length: 8 }, opensAndCloses));
    stopped.signal('SIGCONT');
    assert.equal(await outside.ask(`echo ${toStopped} 20`), 'echoed');
    await second.kill();
    // It has all places, and is broker by now.
    const last = await opened(shared, UDP_PORT);
    assert.equal(await last.ask('listen 1002'), 'listening');
    const toLast = await outside.ask(`connect ${shared} 1002`);
    assert.equal(await outside.ask(`echo ${toLast} 20`), 'echoed');
    assert.equal(await outside.ask(`echo ${toStopped} 20`), 'echoed');
  });

  it('2,000 opens and closes keep every place', async () => {
    const [shared, other] = [newAddress(), newAddress()];
    await opened(shared, UDP_PORT);
    const second = await opened(shared, UDP_PORT);
    const outside = await opened(other, UDP_PORT, 'alone');
    await second.ask('listen 1001');
    const number = await outside.ask(`connect ${shared} 1001`);
    const options = { gids: [gidFromIp(shared)], udpPort: UDP_PORT, logger: silentLogger };
    const slots = new Set<number>();
    for (let i = 0; i < 2000; i++) {
      const group = await joinSharedAddress({ ...options, port: 'native' });
      slots.add(group.share.slot);
      group.leave();
    }
    assert.ok(slots.size <= 4, `slots ${[...slots].join()}`);
    assert.equal(await outside.ask(`echo ${number} 50`), 'echoed');
    const { misdelivered, misdeliveredDrops } = JSON.parse(await second.ask('counters')) as Record<
      string,
      number
    >;
    assert.deepEqual([misdelivered, misdeliveredDrops], [0, 0]);
    const next = await opened(shared, UDP_PORT);
    await next.ask('listen 1002');
    const again = await outside.ask(`connect ${shared} 1002`);
    assert.equal(await outside.ask(`echo ${again} 50`), 'echoed');
  });
});
