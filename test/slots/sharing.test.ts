/** Programs that share an address: both roles, and whoever of them is killed or stopped. */
import assert from 'node:assert/strict';
import { loadNativeAddon } from '../../providers/softroce/native-addon.js';
import { gidFromIp, silentLogger } from '../../core/spi/index.js';
import { joinSharedAddress } from '../../providers/softroce/group-port.js';
import { groupNames } from '../../providers/softroce/shared/names.js';
import type { UnixSocket } from '../../providers/host/index.js';
import { paused } from '../support/patience.js';
import { leaveOut } from '../support/left-out.js';
import { loopback, testPort } from '../support/loopback.js';
import { killAll, opened, Program } from './programs.js';

const UDP_PORT = 4791;
/** By a DREQ: nothing else is sent on an idle connection without signs of life. */
const ENDED = 'DAT_CONN_ENDED';
let hosts = 1;

/** An address of its own for each case: a name that rests from one is not met by another. */
const newAddress = (): string => loopback(83, hosts++);

describe('softroce: programs that share an address', function () {
  this.timeout(120_000);
  afterEach(killAll);

  for (const way of ['by datagrams', 'shm'] as const) {
    it(`both listen, and connect to each other, to others, and from there: ${way}`, async () => {
      const [shared, other] = [newAddress(), newAddress()];
      const first = await opened(shared, UDP_PORT, way);
      const second = await opened(shared, UDP_PORT, way);
      const outside = await opened(other, UDP_PORT, `alone ${way}`);
      for (const [program, port] of [
        [first, 1001],
        [second, 1002],
        [outside, 1003],
      ] as const) {
        assert.equal(await program.ask(`listen ${port}`), 'listening');
      }
      for (const [program, address, port] of [
        [outside, shared, 1001],
        [outside, shared, 1002],
        [first, other, 1003],
        [second, other, 1003],
        [first, shared, 1002],
        [second, shared, 1001],
      ] as const) {
        const number = await program.ask(`connect ${address} ${port}`);
        assert.match(number, /^\d+$/);
        assert.equal(await program.ask(`echo ${number} 50`), 'echoed');
      }
    });
  }

  it('each with the exact ICRC check', async function () {
    const [shared, other] = [newAddress(), newAddress()];
    const first = new Program();
    const said = await first.ask(`open ${shared} ${UDP_PORT} exact`);
    if (/raw socket/.test(said)) leaveOut(this, 'no CAP_NET_RAW', 'run it as root');
    assert.equal(said, 'open');
    const second = await opened(shared, UDP_PORT, 'exact');
    const outside = await opened(other, UDP_PORT, 'alone');
    await first.ask('listen 1001');
    await second.ask('listen 1002');
    for (const port of [1001, 1002]) {
      const number = await outside.ask(`connect ${shared} ${port}`);
      assert.equal(await outside.ask(`echo ${number} 50`), 'echoed');
    }
    for (const program of [first, second]) {
      const counters = JSON.parse(await program.ask('counters')) as Record<string, number>;
      assert.equal(counters['badIcrc'], 0);
      assert.ok(counters['receivedPackets']! > 50);
    }
  });

  it('a service has one listener among them, and is free when that is killed', async () => {
    const address = newAddress();
    const first = await opened(address, UDP_PORT);
    const second = await opened(address, UDP_PORT);
    assert.equal(await second.ask('listen 1001'), 'listening');
    assert.match(await first.ask('listen 1001'), /DAT_CONN_QUAL_IN_USE.*slot 1/);
    await second.kill();
    const third = await opened(address, UDP_PORT);
    assert.equal(await third.ask('listen 1001'), 'listening');
  });

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
    const { strays, strayDrops } = JSON.parse(await second.ask('counters')) as Record<
      string,
      number
    >;
    assert.deepEqual([strays, strayDrops], [0, 0]);
    const next = await opened(shared, UDP_PORT);
    await next.ask('listen 1002');
    const again = await outside.ask(`connect ${shared} 1002`);
    assert.equal(await outside.ask(`echo ${again} 50`), 'echoed');
  });

  it('a program that does not share an address is told, on either side', async () => {
    const [shared, alone] = [newAddress(), newAddress()];
    await opened(shared, UDP_PORT);
    await opened(alone, UDP_PORT, 'alone');
    const stranger = new Program();
    assert.match(
      await stranger.ask(`open ${shared} ${UDP_PORT} alone`),
      /DAT_PORT_IN_USE.*shared: true here/,
    );
    assert.match(await stranger.ask(`open ${alone} ${UDP_PORT}`), /DAT_PORT_IN_USE.*shared: true/);
    const both = `${shared},${alone}`;
    assert.match(await stranger.ask(`open ${both} ${UDP_PORT}`), /DAT_PORT_IN_USE/);
    // Of the group that is there a socket was tried: all goes on.
    const other = await opened(shared, UDP_PORT);
    assert.equal(await other.ask('listen 1001'), 'listening');
  });

  it("another user's program is told whose it is", async function () {
    if (process.getuid?.() !== 0) leaveOut(this, 'not run as root', 'run it as root');
    const address = newAddress();
    await opened(address, UDP_PORT);
    const alone = newAddress();
    await opened(alone, UDP_PORT, 'alone');
    const other = new Program({ user: 65_534 });
    const ask = (words: string): Promise<string> => other.ask(`open ${words}`);
    assert.match(await ask(`${address} ${UDP_PORT}`), /DAT_PORT_IN_USE.*user 0.*of one user/);
    for (const taken of [address, alone, `${address},${alone}`]) {
      const answer = await ask(`${taken} ${UDP_PORT} alone`);
      assert.match(answer, /DAT_PORT_IN_USE.*user 0.*another udpPort/);
    }
  });

  it('what is no message ends the one that says it, and no other', async () => {
    const [shared, other] = [newAddress(), newAddress()];
    const first = await opened(shared, UDP_PORT);
    const second = await opened(shared, UDP_PORT);
    const outside = await opened(other, UDP_PORT, 'alone');
    await second.ask('listen 1001');
    const number = await outside.ask(`connect ${shared} 1001`);
    const { broker } = groupNames([gidFromIp(shared)], UDP_PORT);
    for (let i = 0; i < 200; i++) {
      const socket = await stranger(broker);
      const bytes = Uint8Array.from({ length: 1 + (i % 64) }, (_, at) => (i * 31 + at * 7) & 0xff);
      if (i % 2 === 0) bytes.set([0x44, 0x53, 0x4c, 0x54, 1, 1 + (i % 6)].slice(0, bytes.length));
      try {
        socket.send(bytes, i % 3 === 0 ? [0, 1] : []);
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'EPIPE');
      }
      socket.close();
    }
    assert.equal(await outside.ask(`echo ${number} 50`), 'echoed');
    const third = await opened(shared, UDP_PORT);
    assert.equal(await third.ask('listen 1002'), 'listening');
    assert.equal(await first.ask('pid'), String(first.pid));
  });

  it('on IPv6, and with more addresses than a message takes descriptors', async () => {
    const port = testPort(40);
    const many = Array.from({ length: 20 }, (_, i) => loopback(84, i + 1));
    for (const addresses of ['::1', many.join(',')]) {
      const udpPort = addresses === '::1' ? port : UDP_PORT;
      const first = await opened(addresses, udpPort);
      const second = await opened(addresses, udpPort);
      await first.ask('listen 1001');
      const last = addresses.split(',').at(-1)!;
      const number = await second.ask(`connect ${last} 1001`);
      assert.equal(await second.ask(`echo ${number} 50`), 'echoed');
      await first.kill();
      assert.equal(await second.ask(`ended ${number}`), ENDED);
      await killAll();
    }
  });
});

/** Its queue of callers may be full. */
async function stranger(name: string): Promise<UnixSocket> {
  for (;;) {
    try {
      return loadNativeAddon()!.connectUnix(name);
    } catch (error) {
      if ((error as { code?: string }).code !== 'EAGAIN') throw error;
      await paused(5);
    }
  }
}
