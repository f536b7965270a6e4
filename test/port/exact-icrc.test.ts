/** `icrcCheck: 'exact'`: the identification is seen, not solved for. Needs CAP_NET_RAW. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { gidFromIp } from '../../core/spi/index.js';
import { openDgramPort } from '../../providers/softroce/dgram/port.js';
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import { leaveOut } from '../support/left-out.js';
import { nothing } from '../../plugins/testing/port/bench-pair.js';
import { header, until } from '../../plugins/testing/port/harness.js';
import { describePacketPort } from 'dapl/testing';
import { Stranger } from './stranger.js';
import { inBlock0, loopback, testPort } from '../support/loopback.js';

const UDP_PORT = testPort(30);
const exact = { udpPort: UDP_PORT, icrcCheck: 'exact' } as const;
const WITHOUT = 'the exact ICRC check needs CAP_NET_RAW, which this user has not';
const AS_ROOT = 'as root: npx mocha dist/test/port/exact-icrc.test.js';
const modulePath = fileURLToPath(
  import.meta.resolve('../../providers/softroce/port/native-port.js'),
);

function mayTap(): boolean {
  try {
    void openNativePort({ ...exact, addresses: [loopback(0, 61)] }).close();
    return true;
  } catch (error) {
    if ((error as { code?: string }).code !== 'EPERM') throw error;
    return false;
  }
}

describe('exact ICRC check', () => {
  it('is refused without CAP_NET_RAW, with what to do', function () {
    const { status, stdout } = openWithoutPrivileges();
    if (status !== 0) leaveOut(this, 'root may not become another user here', AS_ROOT);
    assert.match(
      inBlock0(stdout),
      /^EPERM icrcCheck 'exact' on 127\.0\.0\.62 needs a raw socket .*setcap/,
    );
  });

  it('is refused by the dgram port, and what is no check by both', async () => {
    await assert.rejects(openDgramPort({ ...exact, addresses: [loopback(0, 62)] }), {
      code: 'EOPNOTSUPP',
    });
    const wrong = {
      addresses: [loopback(0, 62)],
      udpPort: UDP_PORT,
      icrcCheck: 'precise' as 'exact',
    };
    assert.throws(() => openNativePort(wrong), {
      code: 'EINVAL',
      message: /it must be one of "recovered", "exact"/,
    });
    await assert.rejects(openDgramPort(wrong), { code: 'EINVAL' });
  });
});

/** Root sheds what it may; anybody else may not to begin with. */
function openWithoutPrivileges(): { status: number | null; stdout: string } {
  const script = `
    if (process.getuid() === 0) process.setuid(65534);
    const { openNativePort } = await import(${JSON.stringify(modulePath)});
    try {
      const port = { udpPort: ${testPort(31)}, icrcCheck: 'exact' };
      await openNativePort({ addresses: ['${loopback(0, 62)}'], ...port }).close();
    } catch (error) {
      console.log(error.code, error.message, error.hint);
    }`;
  return spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    encoding: 'utf8',
  });
}

if (mayTap()) {
  describePacketPort('native port, exact ICRC check', {
    capabilities: ['ipv4', 'ipv6', 'unreachable-ipv4', 'groups-ipv4'],
    openPair(family) {
      if (family === 'ipv6') {
        const port = openNativePort({ ...exact, addresses: ['::1'] });
        return Promise.resolve({ a: port, b: port });
      }
      const a = openNativePort({ ...exact, addresses: [loopback(0, 61)] });
      const b = openNativePort({ ...exact, addresses: [loopback(0, 62), loopback(0, 63)] });
      return Promise.resolve({ a, b, silentAddress: loopback(0, 77) });
    },
  });
} else {
  describe('native port, exact ICRC check', () => {
    it('does all that a port does', function () {
      leaveOut(this, WITHOUT, AS_ROOT);
    });
  });
}

describe('exact ICRC check, a stranger whose identification is not what the ICRC says', () => {
  /** The system numbers the stranger's datagrams; the ICRC is made with another number. */
  async function accepted(icrcCheck: 'exact' | 'recovered'): Promise<number> {
    const port = openNativePort({ addresses: [loopback(0, 61)], udpPort: UDP_PORT, icrcCheck });
    const stranger = await Stranger.bind(loopback(0, 64), gidFromIp(loopback(0, 61)), UDP_PORT);
    try {
      port.watch(nothing);
      for (let psn = 0; psn < 50; psn++) await stranger.send(stranger.seal(header(psn)));
      let packets = 0;
      await until(() => {
        packets += port.receive();
        return packets + port.counters.badIcrc === 50;
      }, 'the datagrams');
      assert.equal(port.counters.unseenHeaders, 0);
      return packets;
    } finally {
      stranger.close();
      await port.close();
    }
  }

  it('is believed when the identification is only solved for', async () => {
    assert.equal(await accepted('recovered'), 50);
  });

  it('is found out when it is seen', async function () {
    if (!mayTap()) leaveOut(this, WITHOUT, AS_ROOT);
    assert.ok((await accepted('exact')) <= 1); // the number may be the right one by chance
  });
});
