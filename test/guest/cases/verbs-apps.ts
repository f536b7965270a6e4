// Applications over the verbs provider in a guest, on its rxe0: what `dapl info` and `dapl test`
// say of it, what a user without rights is told, and the samples against their like over softroce
// on the host.
import assert from 'node:assert/strict';
import { join } from 'node:path';

import type { Guest } from '../guest.js';
import type { Lab } from '../lab.js';
import { repositoryRoot } from '../paths.js';
import type { Case, InteropRow } from '../suite.js';
import { FAMILIES, type Family } from '../verbs/scene.js';
import { kernelPeer, type Peer, pingBetween, samplePeer } from './rping.js';

const NODE = `'${process.execPath}'`;
/** Under emulation Node takes seconds to start, and a minute on a machine with other work. */
const NODE_TIMEOUT_MS = 180_000;
const CASE_TIMEOUT_MS = 400_000;
const NOBODY = 'setpriv --reuid 65534 --regid 65534 --clear-groups';

const dist = (...path: string[]): string => `'${join(repositoryRoot, 'dist', ...path)}'`;
const REFUSALS = dist('test', 'guest', 'peer', 'verbs-refusals.js');

interface Info {
  readonly verbs: {
    readonly devices: readonly {
      readonly name: string;
      readonly capabilities?: readonly string[];
      readonly ports: readonly {
        readonly state: string;
        readonly gids: readonly { readonly gid: string; readonly type: string }[];
      }[];
    }[];
    readonly choice?: { readonly device: string; readonly gid: string; readonly reason: string };
  };
}

interface Report {
  readonly devices: readonly {
    readonly name: string;
    readonly capabilities: readonly string[];
    readonly limits: Readonly<Record<string, number>>;
  }[];
  readonly figures: readonly unknown[];
}

const OVER_SOFTROCE = 'over softroce';
const OTHERS = [
  { what: OVER_SOFTROCE, counterpart: 'rping over softroce', open: samplePeer, guests: 1 },
  { what: "librdmacm's", counterpart: 'rping', open: otherGuest, guests: 2 },
] as const;

function otherGuest(lab: Lab): Peer {
  return kernelPeer(lab, 1);
}

export function verbsAppCases(lab: Lab, version: string): Case[] {
  const roles = ['server', 'client'] as const;
  return [
    { name: 'verbs: dapl info', timeoutMs: CASE_TIMEOUT_MS, run: () => info(lab) },
    {
      name: 'verbs: dapl test, and its report',
      full: true,
      timeoutMs: CASE_TIMEOUT_MS,
      run: () => report(lab.guest(0)),
    },
    { name: 'verbs: refusals', timeoutMs: CASE_TIMEOUT_MS, run: () => refusals(lab.guest(0)) },
    ...(['uverbs0', 'rdma_cm'] as const).map((file) => ({
      name: `verbs: refusals, no right to ${file}`,
      full: file === 'rdma_cm',
      timeoutMs: CASE_TIMEOUT_MS,
      run: () => refusesFile(lab.guest(0), file),
    })),
    ...OTHERS.flatMap(({ what, counterpart, open, guests }) =>
      FAMILIES.flatMap((family) =>
        roles.map((role) => ({
          name: `verbs: rping, ${role} over verbs, the other ${what}, ${family}`,
          row: rowOf(counterpart, version, role, family),
          // Each role and each family, with the nearest counterpart.
          full: what !== OVER_SOFTROCE || (role === 'server') !== (family === 'IPv4'),
          guests,
          timeoutMs: CASE_TIMEOUT_MS,
          run: () => ping(lab, role, family, verbsPeer(lab, 0), open(lab)),
        })),
      ),
    ),
  ];
}

function rowOf(counterpart: string, version: string, role: string, family: Family): InteropRow {
  const transport = `rdma_cm, RC, ${family}, our verbs provider on rxe`;
  return { counterpart, version, role, transport, mtuBytes: 1024 };
}

function verbsPeer(lab: Lab, index: number): Peer {
  const program = `exec ${NODE} ${dist('samples', 'rping', 'main.js')} --provider verbs`;
  return { machine: lab.guest(index), program, listening: /^listening/m };
}

async function ping(
  lab: Lab,
  role: 'server' | 'client',
  family: Family,
  ours: Peer,
  other: Peer,
): Promise<void> {
  await lab.setPathMtu(1024);
  const [server, client] = role === 'server' ? [ours, other] : [other, ours];
  await pingBetween(server, client, family);
}

async function info(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const dapl = `${NODE} ${dist('plugins', 'cli', 'main.js')} info`;
  const all = await run(guest, `${dapl} --json -a ${lab.host.ipv4}`);
  const { devices, choice } = (JSON.parse(all) as Info).verbs;
  const [device] = devices;
  assert.equal(device?.name, 'rxe0');
  assert.ok(device.capabilities?.includes('rc') && !device.capabilities.includes('xrc'), all);
  assert.equal(device.ports[0]?.state, 'ACTIVE');
  assert.ok(device.ports[0].gids.every(({ type }) => type === 'RoCE v2'));
  assert.equal(choice?.device, 'rxe0');
  assert.equal(choice.gid, guest.ipv4);
  const reason = `${lab.host.ipv4} is reached from ${guest.ipv4} on eth0: GID `;
  assert.ok(choice.reason.startsWith(reason), choice.reason);
}

/** A part of the suite over rxe0, and a report that does not say where it is from. */
async function report(guest: Guest): Promise<void> {
  const dapl = `${NODE} ${dist('plugins', 'cli', 'main.js')} test -d rxe0`;
  const only = "--only 'Connecting: private data of'";
  const said = await run(guest, `${dapl} ${only} --report /root/report.json`);
  assert.match(said, /^\d+ passed, 0 failed$/m);
  const text = await run(guest, 'cat /root/report.json');
  const { devices, figures } = JSON.parse(text) as Report;
  assert.equal(devices[0]?.name, 'rxe0');
  assert.ok(devices[0].capabilities.includes('rc') && devices[0].limits['maxSge'], text);
  // Two latencies, and writes and reads of two sizes.
  assert.equal(figures.length, 6, text);
  const { stdout } = await guest.run('hostname');
  for (const own of [guest.ipv4, guest.ipv6, stdout.trim()]) {
    assert.ok(!text.includes(own), `${own} in ${text}`);
  }
}

/** As a user that has what the files' modes give everybody, and little memory to lock. */
async function refusals(guest: Guest): Promise<void> {
  const limit = `prlimit --memlock=${String(2 ** 20)}`;
  const some = await run(guest, `${NOBODY} ${limit} ${NODE} ${REFUSALS}`);
  assert.match(some, /^open: allowed$/m);
  assert.match(some, /^datagrams: DAT_\w+ .*\/dev\/infiniband\/umad0.*permission/m);
  assert.match(some, /^XRC: DAT_MODEL_NOT_SUPPORTED .*device rxe0 has no XRC/m);
  const flag = 'IBV_QP_CREATE_BLOCK_SELF_MCAST_LB';
  assert.match(some, new RegExp(`^own multicast blocked: DAT_MODEL_NOT_SUPPORTED .*${flag}`, 'm'));
  assert.match(some, /^loopback false: DAT_MODEL_NOT_SUPPORTED .*multicastLoopback false/m);
  assert.match(some, /^sendOnly: allowed$/m);
  assert.match(some, /^256 KiB: allowed$/m);
  assert.match(some, /^4 MiB: DAT_INSUFFICIENT_RESOURCES .*RLIMIT_MEMLOCK.* is 1 MiB/m);
  assert.match(some, /^a pooled Buffer: DAT_INVALID_PARAMETER .*pool/m);
  assert.match(some, /^closed$/m);
}

/** Without the right to one of the files there is nothing to open, and the file is named. */
async function refusesFile(guest: Guest, file: 'uverbs0' | 'rdma_cm'): Promise<void> {
  const path = `/dev/infiniband/${file}`;
  try {
    const none = await run(guest, `chmod 600 ${path}; ${NOBODY} ${NODE} ${REFUSALS}`);
    assert.match(none, new RegExp(`^open: DAT_\\w+ .*${path} \\(mode 0600, owner root`, 'm'));
  } finally {
    await guest.run(`chmod 666 ${path}`);
  }
}

async function run(guest: Guest, command: string): Promise<string> {
  const options = { timeoutMs: NODE_TIMEOUT_MS, cwd: repositoryRoot };
  const { code, stdout, stderr } = await guest.run(command, options);
  assert.equal(code, 0, stderr);
  return stdout;
}
