/** Programs that share an address, both roles; sharing-ends.long.test.ts kills and stops them. */
import assert from 'node:assert/strict';
import { loadNativeAddon } from '../../providers/softroce/port/native-addon.js';
import { gidFromIp } from '../../core/spi/index.js';
import { groupNames } from '../../providers/softroce/shared/names.js';
import type { UnixSocket } from '../../providers/host/index.js';
import { longIt } from '../support/lane.js';
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
    const test = way === 'shm' ? it : longIt;
    test(`both listen, and connect to each other, to others, and from there: ${way}`, async () => {
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

  longIt('each with the exact ICRC check', async function () {
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

  longIt("another user's program is told whose it is", async function () {
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

  longIt('what is no message ends the one that says it, and no other', async () => {
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

  longIt('on IPv6, and with more addresses than a message takes descriptors', async () => {
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
