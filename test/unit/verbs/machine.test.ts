import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ipFromGid } from '../../../core/spi/index.js';
import { deviceNode, lockedMemory } from '../../../providers/verbs/system/machine.js';
import { readSystem } from '../../../providers/verbs/system/read-system.js';
import { routeTo } from '../../../providers/verbs/opening/request.js';

const LIMITS = `Limit                     Soft Limit           Hard Limit           Units     
Max locked memory         67108864             134217728            bytes     
Max address space         unlimited            unlimited            bytes     
`;

/** What a RoCE adapter and an InfiniBand port leave in sysfs, as far as we look. */
const SYSFS: Readonly<Record<string, string>> = {
  'class/infiniband/mlx5_0/node_type': '1: CA',
  'class/infiniband/mlx5_0/node_guid': '0c42:a103:0012:3456',
  'class/infiniband/mlx5_0/fw_ver': '16.35.2000',
  'class/infiniband/mlx5_0/ports/1/state': '4: ACTIVE',
  'class/infiniband/mlx5_0/ports/1/phys_state': '5: LinkUp',
  'class/infiniband/mlx5_0/ports/1/link_layer': 'Ethernet',
  'class/infiniband/mlx5_0/ports/1/rate': '100 Gb/sec (4X EDR)',
  'class/infiniband/mlx5_0/ports/1/gids/0': 'fe80:0000:0000:0000:5054:00ff:fe4d:0002',
  'class/infiniband/mlx5_0/ports/1/gids/2': '0000:0000:0000:0000:0000:ffff:c0a8:010a',
  'class/infiniband/mlx5_0/ports/1/gids/10': '0000:0000:0000:0000:0000:ffff:c0a8:010a',
  'class/infiniband/mlx5_0/ports/1/gids/11': '0000:0000:0000:0000:0000:0000:0000:0000',
  'class/infiniband/mlx5_0/ports/1/gid_attrs/types/0': 'IB/RoCE v1',
  'class/infiniband/mlx5_0/ports/1/gid_attrs/types/2': 'IB/RoCE v1',
  'class/infiniband/mlx5_0/ports/1/gid_attrs/types/10': 'RoCE v2',
  'class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0': 'ens1',
  'class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/2': 'ens1',
  'class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/10': 'ens1',
  'class/infiniband/mlx5_10/node_type': '1: CA',
  'class/infiniband/mlx5_2/node_type': '1: CA',
  'class/infiniband/mlx5_2/ports/1/state': '1: DOWN',
  'class/infiniband/mlx5_2/ports/1/link_layer': 'InfiniBand',
  'class/infiniband/mlx5_2/ports/1/gids/0': 'fe80:0000:0000:0000:7cfe:9003:0012:3456',
  'class/infiniband/mlx5_2/ports/1/gid_attrs/types/0': 'IB/RoCE v1',
  'class/infiniband/siw0/node_type': '4: RNIC',
  'class/infiniband/siw0/ports/1/state': '4: ACTIVE',
  'class/infiniband/siw0/ports/1/link_layer': 'Ethernet',
  'class/infiniband/siw0/ports/1/gids/0': '5254:004d:0002:0000:0000:0000:0000:0000',
  'class/infiniband_verbs/abi_version': '6',
  'class/infiniband_verbs/uverbs1/ibdev': 'mlx5_0',
  'class/infiniband_mad/umad0/ibdev': 'mlx5_0',
  'class/infiniband_mad/umad0/port': '1',
  'class/infiniband_mad/issm0/ibdev': 'mlx5_0',
  'class/infiniband_mad/issm0/port': '1',
  'class/net/ens1/mtu': '9000',
  'class/net/ens1/address': '52:54:00:4d:00:02',
};

describe('verbs: facts of the machine', () => {
  let root: string;
  before(() => {
    root = mkdtempSync(join(tmpdir(), 'dapl-verbs-'));
    for (const [path, text] of Object.entries({ ...SYSFS, 'proc/limits': LIMITS })) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), `${text}\n`);
    }
    writeFileSync(join(root, 'proc/status'), 'Name:\tnode\nVmLck:\t 4 kB\nVmPin:\t    1024 kB\n');
  });
  after(() => rmSync(root, { recursive: true }));

  it('devices in natural order, with their character devices', async () => {
    const { devices } = await readSystem({ sysfs: root, addresses: {} });
    assert.deepEqual(
      devices.map(({ name, nodeType, uverbs }) => [name, nodeType, uverbs]),
      [
        ['mlx5_0', 'CA', 'uverbs1'],
        ['mlx5_2', 'CA', undefined],
        ['mlx5_10', 'CA', undefined],
        ['siw0', 'RNIC', undefined],
      ],
    );
    assert.equal(devices[0]?.ports[0]?.umad, 'umad0');
    assert.equal(devices[0]?.nodeGuid, '0c42:a103:0012:3456');
    assert.equal(devices[2]?.ports.length, 0);
  });

  it('ports and the GIDs that are in use, with type and interface', async () => {
    const { devices } = await readSystem({ sysfs: root, addresses: {} });
    const gids = devices.flatMap(({ ports }) =>
      ports.flatMap((port) =>
        port.gids.map(({ index, gid, type, netdev }) =>
          [port.state, index, ipFromGid(gid), type, netdev].join(' '),
        ),
      ),
    );
    assert.deepEqual(gids, [
      'ACTIVE 0 fe80::5054:ff:fe4d:2 RoCE v1 ens1',
      'ACTIVE 2 192.168.1.10 RoCE v1 ens1',
      'ACTIVE 10 192.168.1.10 RoCE v2 ens1',
      'DOWN 0 fe80::7cfe:9003:12:3456 IB ',
      'ACTIVE 0 5254:4d:2:: iWARP ',
    ]);
  });

  it('interfaces, IPv4 first', async () => {
    const addresses = { ens1: ['fe80::1', '10.0.0.1'], lo: ['127.0.0.1'] };
    const { interfaces } = await readSystem({ sysfs: root, addresses });
    assert.deepEqual(interfaces, [
      {
        name: 'ens1',
        mtuBytes: 9000,
        hardwareAddress: Uint8Array.from([0x52, 0x54, 0, 0x4d, 0, 2]),
        addresses: ['10.0.0.1', 'fe80::1'],
      },
    ]);
  });

  it('a machine without sysfs has nothing, and that is no error', async () => {
    const system = await readSystem({ sysfs: join(root, 'nowhere'), addresses: {} });
    assert.deepEqual(system, { devices: [], interfaces: [] });
  });

  it('this machine can be read', async () => {
    const { interfaces } = await readSystem();
    if (process.platform !== 'linux') return;
    assert.ok(interfaces.find(({ name }) => name === 'lo')?.addresses.includes('127.0.0.1'));
  });

  it('locked memory: limit and what is pinned', () => {
    assert.deepEqual(lockedMemory(join(root, 'proc')), {
      limitBytes: 64 * 2 ** 20,
      lockedBytes: 2 ** 20,
    });
    assert.equal(lockedMemory(join(root, 'nowhere')).limitBytes, Infinity);
  });

  it('a device node: mode, owner and group by name', () => {
    const path = join(root, 'proc/limits');
    mkdirSync(join(root, 'etc'), { recursive: true });
    const uid = process.getuid?.() ?? 0;
    const gid = process.getgid?.() ?? 0;
    writeFileSync(join(root, 'etc/passwd'), `daemon:x:99999:1::/:\nowner:x:${uid}:0::/:\n`);
    writeFileSync(join(root, 'etc/group'), `crew:x:${gid}:\n`);
    const node = deviceNode(path, 'ib_uverbs', join(root, 'etc'));
    assert.equal(node.facts?.owner, 'owner');
    assert.equal(node.facts?.group, 'crew');
    assert.equal(node.facts?.mode.toString(8).length, 3);
    assert.notEqual(node.user, '');
    assert.equal(deviceNode(join(root, 'nowhere'), 'ib_uverbs').facts, undefined);
  });

  it('routes: the own address towards another, or why there is none', async () => {
    assert.deepEqual(await routeTo('127.0.0.1'), { source: '127.0.0.1' });
    assert.deepEqual(await routeTo('eth0'), { problem: 'it is not an IP address' });
    const nowhere = await routeTo('fe80::1%no-such-if0');
    assert.ok('problem' in nowhere, JSON.stringify(nowhere));
  });
});
