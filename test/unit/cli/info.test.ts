// `dapl info`: what it prints, from machines as data, and as a command on this one.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { type InfoDocument, infoDocument } from '../../../plugins/cli/info/document.js';
import { infoText } from '../../../plugins/cli/commands/info.js';
import type { SoftroceInspection } from '../../../providers/softroce/index.js';
import { chooseDevice } from '../../../providers/verbs/opening/choose-device.js';
import type { VerbsInspection } from '../../../providers/verbs/index.js';
import type { SystemSnapshot } from '../../../providers/verbs/system/system.js';
import { bareMachine, mlx5Roce, rxe } from '../verbs/systems.js';

const MAIN = join(import.meta.dirname, '../../../plugins/cli/main.js');
const ROOT = join(import.meta.dirname, '../../../..');

const softroce: SoftroceInspection = {
  port: 'native',
  udpPort: 4791,
  addresses: [
    {
      interface: 'eth0',
      address: '10.77.0.2',
      isLoopback: false,
      linkMtuBytes: 1500,
      pathMtuBytes: 1024,
      problem: '10.77.0.2, UDP port 4791 is in use by another program',
    },
    { interface: 'lo', address: '127.0.0.1', isLoopback: true },
  ],
  preferred: '127.0.0.1',
};

function inspectionOf(
  system: SystemSnapshot,
  more: Partial<VerbsInspection> = {},
): VerbsInspection {
  return {
    ...system,
    lockedMemory: { limitBytes: 8 * 2 ** 20, lockedBytes: 0 },
    ...more,
  };
}

const lines = (document: InfoDocument): string[] => infoText(document).split('\n');

describe('dapl info', () => {
  it('shows devices, ports, GIDs with type and interface, and stars the chosen one', () => {
    const [device] = rxe.devices;
    const open = {
      ...device!,
      capabilities: ['rc', 'uc', 'ud', 'atomic'] as const,
      activeMtuBytes: [1024],
    };
    const choice = chooseDevice(rxe, {});
    const document = infoDocument(inspectionOf({ ...rxe, devices: [open] }, { choice }), softroce);
    const text = lines(document);
    assert.ok(
      text.includes('    port 1  ACTIVE (LinkUp), Ethernet, 100 Gb/sec (4X EDR), MTU 1024'),
    );
    assert.ok(text.includes('       GID 0  RoCE v2  fe80::5054:ff:fe4d:2  eth0'), text.join('\n'));
    assert.ok(text.includes('    *  GID 1  RoCE v2  10.77.0.2             eth0'), text.join('\n'));
    const can = text.find((line) => line.startsWith('    can'));
    assert.match(can ?? '', /^ {4}can rc, uc, ud, atomic; lacks send-with-invalidate.*, xrc$/);
    assert.ok(text.includes(`  chosen: ${choice.reason}`));
    assert.ok(text.includes('  address: 10.77.0.2'));
    assert.ok(text.some((line) => line.includes('locked memory: 8192 KiB')));
  });

  it('shows why a device does not open, and the warning of a choice', () => {
    const [one, two] = mlx5Roce.devices;
    const devices = [{ ...one!, problem: 'uverbs0 does not open for alice' }, two!];
    const choice = chooseDevice(mlx5Roce, { device: 'mlx5_1', port: 1 });
    const text = infoText(
      infoDocument(inspectionOf({ ...mlx5Roce, devices }, { choice }), softroce),
    );
    assert.match(text, /mlx5_0 .*\n {4}does not open: uverbs0 does not open for alice/);
    assert.match(text, /warning: mlx5_1 port 1 is DOWN \(Disabled\)/);
    assert.match(text, /port 1 {2}DOWN \(Disabled\)/);
  });

  it('says what a machine without RDMA has: softroce', () => {
    const inspection = inspectionOf(bareMachine, {
      problem: 'the verbs provider needs libibverbs.so.1',
      choiceProblem: 'this machine has no RDMA device',
    });
    const text = infoText(infoDocument(inspection, softroce));
    assert.match(text, /cannot be used: the verbs provider needs libibverbs/);
    assert.match(text, /none would be chosen: this machine has no RDMA device/);
    assert.match(text, /softroce: RoCEv2 in user space over UDP 4791, by the native port/);
    assert.match(
      text,
      /\n {5}10\.77\.0\.2 {2}eth0 {2}MTU 1024 {2}10\.77\.0\.2, UDP port 4791 is in/,
    );
    assert.match(text, /\n {2}\* {2}127\.0\.0\.1 {2}lo\n/);
  });

  it('is plain data for programs', () => {
    const choice = chooseDevice(rxe, { address: 'fd77::2' });
    const inspection = inspectionOf(rxe, {
      choice,
      lockedMemory: { limitBytes: Infinity, lockedBytes: 0 },
    });
    const { verbs } = JSON.parse(
      JSON.stringify(infoDocument(inspection, softroce)),
    ) as InfoDocument;
    assert.equal(verbs.choice?.gid, 'fd77::2');
    assert.equal(verbs.choice.gidIndex, 2);
    assert.deepEqual(verbs.devices[0]?.ports[0]?.gids[1], {
      index: 1,
      gid: '10.77.0.2',
      type: 'RoCE v2',
      netdev: 'eth0',
    });
    assert.equal(verbs.lockedMemoryLimitBytes, null);
  });

  describe('as a command', () => {
    const dapl = (...args: string[]): { status: number | null; stdout: string; stderr: string } =>
      spawnSync(process.execPath, [MAIN, ...args], { cwd: ROOT, encoding: 'utf8' });

    it('works on this machine', () => {
      const { status, stdout, stderr } = dapl('info', '--json');
      assert.equal(status, 0, stderr);
      const { softroce: soft } = JSON.parse(stdout) as InfoDocument;
      assert.ok(soft.addresses.some(({ address }) => address === '127.0.0.1'));
    });

    it('ends with 1 when what was asked for cannot be had', () => {
      const { status, stdout } = dapl('info', '-d', 'nowhere0');
      assert.equal(status, 1);
      assert.match(stdout, /none would be chosen: /);
    });

    it('explains what it does not understand', () => {
      const unknown = dapl('inof');
      assert.notEqual(unknown.status, 0);
      assert.match(unknown.stderr, /Did you mean info\?.*dapl --help/s);
      const both = dapl('info', '-d', 'rxe0', '-a', '10.0.0.1');
      assert.notEqual(both.status, 0);
      assert.match(both.stderr, /cannot be used with/);
      assert.match(dapl('info', '-p', '0').stderr, /whole number from 1 to 255/);
    });
  });
});
