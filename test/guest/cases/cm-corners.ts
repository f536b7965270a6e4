// Corners of the connection manager, between ours and the kernel's: what is asked twice, ended from
// both sides at once, or left over from a process that died.
import assert from 'node:assert/strict';

import type { RunningCommand, RunResult } from '../command.js';
import { impair, type Impairment, repair } from '../impair.js';
import type { Lab } from '../lab.js';
import type { Case, InteropRow } from '../suite.js';
import { CM_ATTRIBUTE, type CmName, type Dissection } from '../tshark.js';
import { captured, startPeer, transcript } from './captured.js';
import { putPeer } from './peer-programs.js';

export const CORNER_PORT = 7800;
export type Role = 'client' | 'server';
export type Family = 'ipv4' | 'ipv6';

const START_TIMEOUT_MS = 20_000;
const END_TIMEOUT_MS = 60_000;
const ROLES: readonly Role[] = ['client', 'server'];
const CONNECTIONS = 10;
/** Longer than either side takes to ask for the end once it is connected. */
const CROSSING = { outgoing: 'delay 300ms' };
const LEAVE_AFTER_MS = 150;
const STALE_CONNECTION = 10;
const CONSUMER_REJECT = 28;
const WHY = 'the kernel has no room';
const WHOLE_LIFE = /^REQ REP RTU DREQ DREP$/;

export function cmCornerCases(lab: Lab, version: string): Case[] {
  const row = (role: Role, what: string, family: Family = 'ipv4'): InteropRow => ({
    counterpart: 'cm-peer (librdmacm)',
    version,
    role,
    transport: `rdma_cm, RC, ${family === 'ipv4' ? 'IPv4' : 'IPv6'}, ${what}`,
    mtuBytes: 4096,
  });
  const either = (family: Family, what: string, run: (role: Role) => Promise<void>): Case[] =>
    ROLES.map((role) => ({
      name: `cm: ${what}, our ${role}`,
      row: row(role, what, family),
      run: () => run(role),
    }));
  return [
    ...either('ipv6', 'every message twice', (role) => twice(lab, role)),
    ...either('ipv4', 'we disconnect', (role) => ended(lab, role, 'us')),
    ...either('ipv6', 'the kernel disconnects', (role) => ended(lab, role, 'kernel')),
    ...either('ipv4', 'both disconnect at once', (role) => crossing(lab, role)),
    {
      name: 'cm: our process is killed, its twin connects (REJ 10)',
      row: row('client', 'stale connection after our restart, REJ 10'),
      run: () => ourTwin(lab),
    },
    {
      name: 'cm: the kernel forgets its connections and connects again (REJ 10)',
      row: row('server', "stale connection after the kernel's restart, REJ 10"),
      run: () => kernelTwin(lab),
    },
    {
      name: 'cm: the kernel rejects with private data',
      row: row('client', 'REJ 28 with private data', 'ipv6'),
      run: () => rejected(lab),
    },
  ];
}

export interface Corner {
  readonly role: Role;
  readonly family: Family;
  readonly count: number;
  /** Words of cm-peer: stay, leave or sequence. */
  readonly kernelHow: 'stay' | 'leave' | 'sequence';
  /** Our verb and what follows its address. */
  readonly ourVerb: string;
  readonly ourArgs: string;
  readonly timeoutMs?: number;
}

/** Both ends from start to end: what each has printed. */
export async function meet(
  lab: Lab,
  { role, family, count, kernelHow, ourVerb, ourArgs, timeoutMs = END_TIMEOUT_MS }: Corner,
): Promise<{ readonly ours: RunResult; readonly kernels: RunResult }> {
  const guest = lab.guest(0);
  const program = `exec ${putPeer(guest, 'cm-peer')}`;
  const address = role === 'client' ? guest[family] : lab.host[family];
  const startOurs = (): RunningCommand => startPeer(lab, `${ourVerb} ${address} ${ourArgs}`);
  const startKernels = (verb: string): RunningCommand =>
    guest.spawn(`${program} ${verb} ${address} ${CORNER_PORT} ${count} ${kernelHow}`);
  const server = role === 'client' ? startKernels('hold') : startOurs();
  let client: RunningCommand | undefined;
  try {
    await server.waitForOutput(/listening/, START_TIMEOUT_MS);
    client = role === 'client' ? startOurs() : startKernels('connect');
    const [ours, kernels] = role === 'client' ? [client, server] : [server, client];
    const [ourEnd, kernelsEnd] = [ours.finish(timeoutMs), kernels.finish(timeoutMs)];
    endWith(ourEnd, kernels);
    endWith(kernelsEnd, ours);
    return { ours: await ourEnd, kernels: await kernelsEnd };
  } finally {
    server.kill();
    client?.kill();
  }
}

/** Whoever has failed does not leave the other waiting. */
function endWith(end: Promise<RunResult>, other: RunningCommand): void {
  end.then(
    ({ code }) => {
      if (code !== 0) other.kill();
    },
    () => other.kill(),
  );
}

/** Every connection has come about on both sides, and has been disconnected, not broken. */
export function assertWholeLives(results: Awaited<ReturnType<typeof meet>>, count: number): void {
  const { ours, kernels } = results;
  const told = `ours: ${transcript(ours)}; the kernel's: ${transcript(kernels)}`;
  const lines = (result: RunResult, pattern: RegExp): number =>
    result.stdout.match(pattern)?.length ?? 0;
  assert.deepEqual([ours.code, kernels.code], [0, 0], told);
  assert.equal(lines(ours, /^ESTABLISHED/gm), count, told);
  assert.equal(lines(ours, /^DISCONNECTED/gm), count, told);
  assert.equal(lines(kernels, /^established/gm), count, told);
  assert.equal(lines(kernels, /^disconnected/gm), count, told);
}

function ourVerbOf(role: Role): string {
  return role === 'client' ? 'connect-all' : 'hold';
}

async function onLink(
  lab: Lab,
  name: string,
  impairment: Impairment,
  body: () => Promise<void>,
): Promise<Dissection[]> {
  await lab.setPathMtu(4096);
  const guest = lab.guest(0);
  return captured(
    lab,
    guest,
    name,
    async () => {
      await impair(guest, impairment);
      try {
        await body();
      } finally {
        await repair(guest);
      }
    },
    WHOLE_LIFE,
  );
}

/** Each message of either side arrives twice, at once: REQ, REP, RTU, DREQ and DREP. */
async function twice(lab: Lab, role: Role): Promise<void> {
  const doubled = { outgoing: 'duplicate 100%', incoming: 'duplicate 100%' };
  const packets = await onLink(lab, `twice-${role}`, doubled, async () => {
    const both = await meet(lab, {
      role,
      family: 'ipv6',
      count: CONNECTIONS,
      kernelHow: 'stay',
      ourVerb: ourVerbOf(role),
      ourArgs: `${CONNECTIONS} 0`,
    });
    assertWholeLives(both, CONNECTIONS);
  });
  // The capture sees what the guest's link has doubled on its way to us.
  const first: CmName = role === 'client' ? 'REP' : 'REQ';
  const doubles = packets.filter(({ cmAttribute }) => cmAttribute === CM_ATTRIBUTE[first]);
  assert.ok(doubles.length >= 2 * CONNECTIONS, `${doubles.length} times ${first}`);
}

async function ended(lab: Lab, role: Role, by: 'us' | 'kernel'): Promise<void> {
  await onLink(lab, `ended-by-${by}-${role}`, {}, async () => {
    const both = await meet(lab, {
      role,
      family: by === 'us' ? 'ipv4' : 'ipv6',
      count: CONNECTIONS,
      kernelHow: by === 'us' ? 'stay' : 'leave',
      ourVerb: ourVerbOf(role),
      ourArgs: by === 'us' ? `${CONNECTIONS} 0` : String(CONNECTIONS),
    });
    assertWholeLives(both, CONNECTIONS);
  });
}

/** What the guest sends is under way for long enough that both sides ask for the end. */
async function crossing(lab: Lab, role: Role): Promise<void> {
  const packets = await onLink(lab, `crossing-${role}`, CROSSING, async () => {
    // The kernel's DREQ leaves right after its last RTU: only the RTUs before that leave us time.
    const leave = role === 'client' ? LEAVE_AFTER_MS : 'each';
    const both = await meet(lab, {
      role,
      family: 'ipv4',
      count: CONNECTIONS,
      kernelHow: 'leave',
      ourVerb: ourVerbOf(role),
      ourArgs: `${CONNECTIONS} ${leave}`,
    });
    assertWholeLives(both, CONNECTIONS);
  });
  const senders = new Map<string, Set<string>>();
  for (const { cmAttribute, source, cm } of packets) {
    if (cmAttribute !== CM_ATTRIBUTE.DREQ) continue;
    const connection = [cm.dreqCommId, cm.dreqRemoteCommId].sort().join();
    senders.set(connection, (senders.get(connection) ?? new Set()).add(source));
  }
  const crossed = [...senders.values()].filter(({ size }) => size === 2).length;
  assert.ok(crossed > 0, `no DREQ of ${senders.size} connections met another`);
}

/** The kernel still has the connection of a process that had our GUID and our queue pair. */
async function ourTwin(lab: Lab): Promise<void> {
  await lab.setPathMtu(4096);
  const guest = lab.guest(0);
  const packets = await captured(lab, guest, 'our-twin', async () => {
    const program = `exec ${putPeer(guest, 'cm-peer')}`;
    const serving = guest.spawn(`${program} hold ${guest.ipv4} ${CORNER_PORT} 2 stay`);
    const first = startPeerAfter(serving, () =>
      startPeer(lab, `--twin connect-again ${guest.ipv4}`),
    );
    const twin = first.then(async (dead) => {
      await dead.waitForOutput(/^ESTABLISHED/m, START_TIMEOUT_MS);
      await dead.stop('SIGKILL');
      return startPeer(lab, `--twin connect-again ${guest.ipv4}`);
    });
    try {
      const second = await twin;
      await second.waitForOutput(/^ESTABLISHED/m, START_TIMEOUT_MS);
      const line = new RegExp(`^NON_PEER_REJECTED rejectReason=${STALE_CONNECTION} `, 'm');
      assert.match(second.stdout, line);
      // The kernel has asked the dead process, which is us, for an end of the old connection.
      await serving.waitForOutput(/^established\n(.*\n)*disconnected$/m, START_TIMEOUT_MS);
    } finally {
      serving.kill();
      for (const peer of await Promise.allSettled([first, twin])) {
        if (peer.status === 'fulfilled') peer.value.kill();
      }
    }
  });
  assert.ok(packets.some(({ rejectReason }) => rejectReason === STALE_CONNECTION));
}

async function startPeerAfter(
  serving: RunningCommand,
  start: () => RunningCommand,
): Promise<RunningCommand> {
  await serving.waitForOutput(/listening/, START_TIMEOUT_MS);
  return start();
}

/**
 * The guest's device goes and comes while nothing gets out: as after a restart its queue pairs are
 * numbered from the start again, and its GUID is the same. Ours knows nothing of the end.
 */
async function kernelTwin(lab: Lab): Promise<void> {
  await lab.setPathMtu(4096);
  const guest = lab.guest(0);
  const program = `exec ${putPeer(guest, 'cm-peer')}`;
  const drive = `${program} connect ${lab.host.ipv4} ${CORNER_PORT} 1 stay`;
  await renewDevice(lab);
  const packets = await captured(lab, guest, 'kernel-twin', async () => {
    const serving = startPeer(lab, `hold ${lab.host.ipv4} 2`);
    try {
      await serving.waitForOutput(/listening/, START_TIMEOUT_MS);
      const first = guest.spawn(drive);
      await first.waitForOutput(/established/, START_TIMEOUT_MS);
      await impair(guest, { outgoing: 'loss 100%' });
      await first.stop('SIGKILL');
      await renewDevice(lab);
      await repair(guest);
      const twin = await guest.run(drive);
      assert.match(twin.stdout, new RegExp(`^rejected ${STALE_CONNECTION}`, 'm'), transcript(twin));
      // The connection that was stale has ended, and a third one finds nothing in its way.
      await serving.waitForOutput(/^DISCONNECTED/m, START_TIMEOUT_MS);
      const third = guest.spawn(drive);
      await third.waitForOutput(/established/, START_TIMEOUT_MS);
      await third.stop('SIGKILL');
      const served = await serving.finish();
      assert.equal(served.code, 0, transcript(served));
    } finally {
      serving.kill();
      await repair(guest);
    }
  });
  assert.ok(packets.some(({ rejectReason }) => rejectReason === STALE_CONNECTION));
}

async function renewDevice(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const renewed = await guest.run('rdma link del rxe0 && rdma link add rxe0 type rxe netdev eth0');
  assert.equal(renewed.code, 0, renewed.stderr);
  await guest.linkUp();
}

async function rejected(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const packets = await captured(lab, guest, 'kernel-rejects', async () => {
    const program = `exec ${putPeer(guest, 'cm-peer')}`;
    const serving = guest.spawn(`${program} reject ${guest.ipv6} ${CORNER_PORT} '${WHY}'`);
    try {
      await serving.waitForOutput(/listening/, START_TIMEOUT_MS);
      const result = await startPeer(lab, `connect-text ${guest.ipv6} ${CORNER_PORT}`).finish();
      const line = `PEER_REJECTED rejectReason=${CONSUMER_REJECT}`;
      assert.ok(result.stdout.startsWith(line), transcript(result));
      assert.ok(result.stdout.includes(`private data: ${WHY}\n`), transcript(result));
    } finally {
      serving.kill();
    }
  });
  const hex = Buffer.from(WHY).toString('hex');
  assert.ok(packets.some(({ rejectPrivateData }) => rejectPrivateData.startsWith(hex)));
}
