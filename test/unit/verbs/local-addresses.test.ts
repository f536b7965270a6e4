// Which of a device's addresses is listened on, and which one asks whom.
import assert from 'node:assert/strict';
import type { networkInterfaces } from 'node:os';
import { type Gid, gidFromIp, gidFromWords } from '../../../core/spi/index.js';
import { LocalAddresses } from '../../../providers/verbs/cm/local-addresses.js';

const PORT = 7471;
const ETH0 = ['10.77.0.2/24', '10.77.9.1/32', 'fd77::2/64', 'fe80::2/64'];
const ETH1 = ['192.0.2.7/12', '2001:db8::7/47'];
/** As an InfiniBand port's: a prefix of its subnet and a GUID. */
const PORT_GID = gidFromWords([0xfe800000, 0, 0x0002c903, 0x00a1b2c3]);
const NOTHING = new Uint8Array(16);

describe('verbs: local addresses', () => {
  const device = (...ips: string[]): { name: string; gids: Gid[] } => ({
    name: 'rxe0',
    gids: ips.map(gidFromIp),
  });
  const roce = device('fe80::2', 'fd77::2', '10.77.9.1', '10.77.0.2');
  const local = (of: { name: string; gids: readonly Gid[] }): LocalAddresses =>
    new LocalAddresses(of, () => interfaces({ eth0: ETH0, eth1: ETH1 }));

  /** `from -> to`, or `-> to` where the routes decide. */
  const path = (of: LocalAddresses, to: string, index?: number): string => {
    const { source, destination } = of.pathTo(gidFromIp(to), PORT, index);
    return `${source?.text ?? ''} -> ${destination.text}`;
  };

  it('listens on each address of a RoCE device once, and on no other', () => {
    const gids = [...roce.gids, NOTHING, gidFromIp('10.77.0.2')];
    assert.deepEqual(
      local({ ...roce, gids })
        .all(PORT)
        .map(({ text }) => text),
      [`[fe80::2]:${PORT}`, `[fd77::2]:${PORT}`, `10.77.9.1:${PORT}`, `10.77.0.2:${PORT}`],
    );
  });

  it('listens on the addresses of the host where GIDs are names of ports', () => {
    const of = local({ name: 'mlx5_0', gids: [PORT_GID] });
    assert.deepEqual(
      of.all(PORT).map(({ text }) => text.slice(0, -`:${PORT}`.length)),
      [...ETH0, ...ETH1].map((cidr) => bracketed(cidr.split('/')[0] ?? '')),
    );
    assert.equal(path(of, '10.1.2.3'), ` -> 10.1.2.3:${PORT}`);
  });

  it('asks the host itself from the address that is asked', () => {
    assert.equal(path(local(roce), '10.77.9.1'), `10.77.9.1:0 -> 10.77.9.1:${PORT}`);
    assert.equal(path(local(roce), 'fd77::2'), `[fd77::2]:0 -> [fd77::2]:${PORT}`);
  });

  it('asks a peer from its subnet, to the bit, else from the first address of its family', () => {
    assert.equal(path(local(roce), '10.77.0.200'), `10.77.0.2:0 -> 10.77.0.200:${PORT}`);
    assert.equal(path(local(roce), '10.77.1.1'), `10.77.9.1:0 -> 10.77.1.1:${PORT}`);
    assert.equal(path(local(roce), 'fd77::99'), `[fd77::2]:0 -> [fd77::99]:${PORT}`);
    const other = local(device('10.77.0.2', '192.0.2.7', 'fd77::2', '2001:db8::7'));
    assert.equal(path(other, '192.15.255.255'), `192.0.2.7:0 -> 192.15.255.255:${PORT}`);
    assert.equal(path(other, '192.16.0.0'), `10.77.0.2:0 -> 192.16.0.0:${PORT}`);
    assert.equal(path(other, '2001:db8:1::1'), `[2001:db8::7]:0 -> [2001:db8:1::1]:${PORT}`);
    assert.equal(path(other, '2001:db8:2::1'), `[fd77::2]:0 -> [2001:db8:2::1]:${PORT}`);
  });

  it('writes the interface into link-local addresses, and into no other', () => {
    const { source, destination } = local(roce).pathTo(gidFromIp('fe80::99'), PORT, undefined);
    assert.deepEqual([source, destination].map(scopeOf), [2, 2]);
    assert.equal(source?.text, '[fe80::2]:0');
    const global = local(roce).pathTo(gidFromIp('fd77::99'), PORT, undefined);
    assert.deepEqual([global.source, global.destination].map(scopeOf), [0, 0]);
    assert.deepEqual(local(roce).all(PORT).slice(0, 2).map(scopeOf), [2, 0]);
  });

  it('asks from the GID index that was asked for, or says that it cannot', () => {
    assert.equal(path(local(roce), '10.77.0.200', 2), `10.77.9.1:0 -> 10.77.0.200:${PORT}`);
    const refusals: [string, number | undefined, RegExp][] = [
      ['10.77.0.200', 1, /^rxe0 has no IPv4 address at GID index 1 to reach 10\.77\.0\.200 from$/],
      ['fd77::9', 0, /^rxe0 has no IPv6 address at GID index 0/],
      ['fe80::9', 3, /no link-local IPv6 address/],
      ['10.77.0.200', 9, /GID index 9/],
    ];
    for (const [to, index, message] of refusals) {
      assert.throws(() => path(local(roce), to, index), { code: 'ENETUNREACH', message });
    }
    assert.throws(() => path(local(device('fd77::2')), '10.0.0.1'), {
      code: 'ENETUNREACH',
      message: 'rxe0 has no IPv4 address to reach 10.0.0.1 from',
    });
  });

  it('follows addresses that come and go', () => {
    let now = { eth0: ['10.77.0.2/32'] };
    const of = new LocalAddresses(device('192.0.2.7', '10.77.0.2'), () => interfaces(now));
    assert.equal(path(of, '10.77.0.9'), `192.0.2.7:0 -> 10.77.0.9:${PORT}`);
    now = { eth0: ['10.77.0.2/24'] };
    assert.equal(path(of, '10.77.0.9'), `10.77.0.2:0 -> 10.77.0.9:${PORT}`);
  });

  it('finds a GID in the table where the kernel says that it is, or elsewhere', () => {
    const of = local(roce);
    assert.equal(of.indexOf(gidFromIp('10.77.0.2'), 3), 3);
    assert.equal(of.indexOf(gidFromIp('10.77.0.2'), 0), 3);
    assert.equal(of.indexOf(gidFromIp('10.0.0.1'), 7), 7, 'as the kernel says');
  });
});

function scopeOf(address: { bytes: Uint8Array } | undefined): number {
  const { buffer, byteOffset } = address?.bytes ?? new Uint8Array(28);
  return new DataView(buffer, byteOffset).getUint32(24, true);
}

function bracketed(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

/** As os.networkInterfaces() tells them. */
function interfaces(of: Record<string, string[]>): ReturnType<typeof networkInterfaces> {
  return Object.fromEntries(
    Object.entries(of).map(([name, cidrs]) => [
      name,
      cidrs.map((cidr) => {
        const [address = ''] = cidr.split('/');
        const common = { address, cidr, netmask: '', mac: '02:00:00:00:00:01', internal: false };
        return address.includes(':')
          ? { ...common, family: 'IPv6' as const, scopeid: address.startsWith('fe80') ? 2 : 0 }
          : { ...common, family: 'IPv4' as const };
      }),
    ]),
  );
}
