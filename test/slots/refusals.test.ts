/** What the system, or other programs, do to a shared address: it is said, or mended. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { DatError, type Ia, openIa } from '../../core/index.js';
import { gidFromIp } from '../../core/spi/index.js';
import { groupNames } from '../../providers/softroce/shared/names.js';
import { inspectSoftroce, softroce } from '../../providers/softroce/index.js';
import { nativeAddon } from '../native/addon.js';
import { longIt } from '../support/lane.js';
import { leaveOut } from '../support/left-out.js';
import { loopback, testPort } from '../support/loopback.js';
import { patience } from '../support/patience.js';
import { killAll, opened, Program } from './programs.js';

const UDP_PORT = 4791;
/** RET of the constant 0: all packets to the first place (linux/filter.h). */
const ALL_TO_FIRST = Uint32Array.of(6, 0, 0, 0);
/** All that is mounted can only be read, in a mount namespace of its own. */
const READ_ONLY = [
  'mount --make-rprivate /',
  'for at in / /tmp /run /var /dev/shm /home; do',
  '  mountpoint -q "$at" && mount -o remount,bind,ro "$at"',
  'done',
  '! touch /tmp/dapl-none 2>&- || exit 9',
  'exec "$@"',
].join('\n');
const READ_ONLY_SYSTEM = ['unshare', '--mount', 'sh', '-c', READ_ONLY, 'sh'];
let hosts = 1;

const newAddress = (): string => loopback(87, hosts++);

async function refusal(...addresses: string[]): Promise<DatError> {
  let ia: Ia | undefined;
  try {
    ia = await openIa(softroce({ addresses, shared: true }));
  } catch (error) {
    assert.ok(error instanceof DatError);
    return error;
  } finally {
    await ia?.close();
  }
  assert.fail('it opens');
}

async function misdeliveredTo(program: Program): Promise<number> {
  const counters = JSON.parse(await program.ask('counters')) as Record<string, number>;
  return counters['misdelivered']!;
}

describe('softroce: an address cannot be shared, or not as before', function () {
  this.timeout(120_000);
  afterEach(killAll);

  for (const [code, type, said] of [
    ['EPERM', 'DAT_MODEL_NOT_SUPPORTED', /seccomp/],
    ['EINVAL', 'DAT_MODEL_NOT_SUPPORTED', /seccomp/],
    ['ENOMEM', 'DAT_INSUFFICIENT_RESOURCES', /optmem_max/],
  ] as const) {
    it(`the system refuses to steer packets: ${code}`, async () => {
      const address = newAddress();
      const addon = nativeAddon();
      const attachSteering = addon.attachSteering.bind(addon);
      addon.attachSteering = () => {
        throw Object.assign(new Error('setsockopt'), { code });
      };
      try {
        const error = await refusal(address);
        assert.equal(error.code, type);
        assert.match(`${error.message} ${error.hint ?? ''}`, said);
      } finally {
        addon.attachSteering = attachSteering;
      }
      // Nothing is left: neither a socket, nor the name.
      const alone = await openIa(softroce({ addresses: [address] }));
      await alone.close();
      const shared = await openIa(softroce({ addresses: [address], shared: true }));
      await shared.close();
    });
  }

  for (const call of ['connectUnix', 'createSharedTable', 'bindGroupSocket'] as const) {
    it(`too many open files: ${call}`, async () => {
      const addon = nativeAddon();
      const before: unknown = Reflect.get(addon, call);
      addon[call] = () => {
        throw Object.assign(new Error('Too many open files'), { code: 'EMFILE' });
      };
      try {
        const error = await refusal(newAddress());
        assert.equal(error.code, 'DAT_INSUFFICIENT_RESOURCES');
        assert.match(`${error.message} ${error.hint}`, /too many open files.*ulimit -n/i);
      } finally {
        Object.assign(addon, { [call]: before });
      }
    });
  }

  longIt('a program shares other addresses, or in another order: it is told so', async () => {
    const [one, two] = [newAddress(), newAddress()];
    const first = await openIa(softroce({ addresses: [one, two], shared: true }));
    try {
      const refusals = await Promise.all([refusal(two, one), refusal(two)]);
      for (const error of refusals) {
        assert.equal(error.code, 'DAT_PORT_IN_USE');
        assert.match(`${error.message} ${error.hint}`, /in this order.*SIGSTOP/);
      }
    } finally {
      await first.close();
    }
  });

  it('a process that holds the list of listeners is stopped: who listens is told so', async () => {
    const address = newAddress();
    const program = await opened(address, UDP_PORT);
    const { lock } = groupNames([gidFromIp(address)], UDP_PORT);
    const held = nativeAddon().listenUnix(lock, 1);
    try {
      const said = await program.ask('listen 1001');
      assert.match(said, /DAT_INVALID_STATE.*holds the list of listeners.*SIGSTOP/);
    } finally {
      held.close();
    }
    assert.equal(await program.ask('listen 1001'), 'listening');
  });

  it('inspectSoftroce says which address programs share', async () => {
    const udpPort = testPort(41);
    await opened('::1', udpPort);
    const { addresses } = await inspectSoftroce(udpPort);
    const shared = addresses.filter(({ isShared }) => isShared === true);
    assert.deepEqual(
      shared.map(({ address }) => address),
      ['::1'],
    );
    assert.match(shared[0]!.problem ?? '', /in use/);
  });

  longIt(
    'needs no directory: not one that can be written to, and no name of one',
    async function () {
      const probe = spawnSync(READ_ONLY_SYSTEM[0]!, [...READ_ONLY_SYSTEM.slice(1), 'true']);
      if (probe.status !== 0) {
        leaveOut(this, 'no mount namespace with a read-only system', 'run it as root');
      }
      const address = newAddress();
      const env = { PATH: process.env['PATH'], TMPDIR: '/nowhere', HOME: '/nowhere' };
      const programs = [1001, 1002].map((port) => ({
        port,
        program: new Program({ within: READ_ONLY_SYSTEM, env }),
      }));
      for (const { program, port } of programs) {
        assert.equal(await program.ask(`open ${address} ${UDP_PORT}`), 'open');
        assert.equal(await program.ask(`listen ${port}`), 'listening');
      }
      const number = await programs[0]!.program.ask(`connect ${address} 1002`);
      assert.equal(await programs[0]!.program.ask(`echo ${number} 20`), 'echoed');
    },
  );

  longIt('another program steers: nothing is lost, and the broker steers again', async () => {
    const [shared, elsewhere] = [newAddress(), newAddress()];
    const broker = await opened(shared, UDP_PORT);
    const second = await opened(shared, UDP_PORT);
    const outside = await opened(elsewhere, UDP_PORT, 'alone');
    await second.ask('listen 1001');
    const number = await outside.ask(`connect ${shared} 1001`);
    const addon = nativeAddon();
    for (let time = 0; time < 2; time++) {
      const before = await misdeliveredTo(broker);
      const socket = addon.bindGroupSocket(gidFromIp(shared), 0, UDP_PORT);
      addon.attachSteering(socket, ALL_TO_FIRST);
      // It is the last one of its group: no other moves.
      addon.closeDescriptor(socket);
      // Packets beyond the largest path MTU among them: devices of ours on one host.
      assert.equal(await outside.ask(`echo ${number} 20 16000`), 'echoed');
      assert.ok((await misdeliveredTo(broker)) >= before + 20, 'they came to the broker');
      // It may have steered a second ago: not more often than that.
      let misdelivered = -1;
      for (let i = 0; i < 200 && misdelivered !== (await misdeliveredTo(broker)); i++) {
        misdelivered = await misdeliveredTo(broker);
        assert.equal(await outside.ask(`echo ${number} 100`), 'echoed');
      }
      assert.equal(await misdeliveredTo(broker), misdelivered, 'packets find their way again');
    }
  });

  longIt('a member has overwritten the shared table: a newcomer hears that', async () => {
    const address = newAddress();
    const [broker, member, peer] = [new Program(), new Program(), new Program()];
    assert.equal(await member.ask('slow 0'), 'is');
    for (const program of [broker, member, peer]) {
      assert.equal(await program.ask(`open ${address} ${UDP_PORT}`), 'open');
    }
    assert.equal(await member.ask('scribble'), 'scribbled');
    const startMs = performance.now();
    const error = await refusal(address);
    assert.match(error.message, /has overwritten its shared table/);
    assert.match(error.hint ?? '', /the process that gives out slots does answer/);
    const tookMs = performance.now() - startMs;
    assert.ok(tookMs < patience(2_000), `${tookMs} ms`);
  });
});
