// Datagrams against librdmacm's udaddy: who is asked (SIDR), and what is sent and answered.
import assert from 'node:assert/strict';
import { join } from 'node:path';

import { LISTENS_MS, settled } from '../machine-time.js';
import type { RunningCommand, RunResult } from '../command.js';
import type { Lab } from '../lab.js';
import { repositoryRoot } from '../paths.js';
import { runDir } from '../sandbox.js';
import type { Case, InteropRow } from '../suite.js';
import { CM_ATTRIBUTE, type Dissection } from '../tshark.js';
import { cmSequence } from '../wire-check.js';
import { captured, transcript } from './captured.js';
import { assertCodecsAgree } from './codecs.js';
import { withLoss } from './lost-messages.js';

const CLOSED_PORT = 7999;
const START_TIMEOUT_MS = 10_000;
/** A lost message of the CM costs four seconds. */
const RUN_TIMEOUT_MS = 60_000;
const UD_SEND_ONLY_WITH_IMMEDIATE = 0x65;
const { SIDR_REQ, SIDR_REP } = CM_ATTRIBUTE;

type Role = 'server' | 'client';

interface Load {
  readonly connections: number;
  readonly messages: number;
  readonly sizeBytes: number;
  readonly family: 'ipv4' | 'ipv6';
}

/** The defaults; one byte short of a full packet and a full one, many endpoints. */
const LOADS: readonly Load[] = [
  { connections: 1, messages: 10, sizeBytes: 100, family: 'ipv4' },
  { connections: 3, messages: 20, sizeBytes: 4095, family: 'ipv4' },
  { connections: 1, messages: 10, sizeBytes: 1, family: 'ipv6' },
  { connections: 20, messages: 5, sizeBytes: 4096, family: 'ipv6' },
];
/**
 * Not the kernel's SIDR_REP: the kernel forgets a request that it has
 * answered, takes its repetition for another one, and the udaddy that has all its connections does
 * not answer that.
 */
const LOSSES = [
  { role: 'server', message: 'SIDR_REQ', sender: "the kernel's" },
  { role: 'server', message: 'SIDR_REP', sender: 'ours' },
  { role: 'client', message: 'SIDR_REQ', sender: 'ours' },
] as const;
const SMALL: Load = { connections: 1, messages: 3, sizeBytes: 1000, family: 'ipv4' };

export function udaddyCases(lab: Lab, version: string): Case[] {
  const row = (role: Role, what: string): InteropRow => ({
    counterpart: 'udaddy',
    version,
    role,
    transport: `rdma_cm, SIDR, UD, ${what}`,
    mtuBytes: 4096,
  });
  const exchanges = ROLES.flatMap((role) =>
    LOADS.map((load) => {
      const ip = load.family === 'ipv4' ? 'IPv4' : 'IPv6';
      const what = `${ip}, ${load.connections} at once, ${load.messages} of ${load.sizeBytes} B`;
      const name = `udaddy, our ${role}, ${what}`;
      return { name, row: row(role, what), run: () => exchange(lab, role, load) };
    }),
  );
  const losses = LOSSES.map(({ role, message, sender }) => {
    const what = `${sender} first ${message} lost`;
    return {
      name: `udaddy, our ${role}, ${what}`,
      row: row(role, `IPv4, ${what}`),
      run: () =>
        withLoss(lab, sender === 'ours' ? 'ingress' : 'egress', message, `${message}-${role}`, () =>
          RUN[role](lab, SMALL),
        ),
    };
  });
  return [
    ...exchanges,
    ...losses,
    {
      name: 'udaddy, our client, a kernel port that nobody serves',
      row: row('client', 'IPv4, SIDR status 1'),
      run: () => closedKernelPort(lab),
    },
    {
      name: 'udaddy, the kernel client, a port of ours that nobody serves',
      row: row('server', 'IPv4, SIDR status 1'),
      run: () => closedPortOfOurs(lab),
    },
  ];
}

const ROLES: readonly Role[] = ['server', 'client'];
const RUN = { server: ourServer, client: ourClient } as const;

async function exchange(lab: Lab, role: Role, load: Load): Promise<void> {
  const { connections, messages, sizeBytes } = load;
  await lab.setPathMtu(4096);
  const guest = lab.guest(0);
  const name = `udaddy-${role}-${connections}-${sizeBytes}`;
  const packets = await captured(lab, guest, name, () => RUN[role](lab, load));
  assert.deepEqual(cmSequence(packets), [SIDR_REQ, SIDR_REP]);
  assertCodecsAgree(join(runDir, `${name}.pcap`), 2 * connections);
  for (const source of [lab.host[load.family], guest[load.family]]) {
    assert.equal(datagramsFrom(source, packets), connections * messages, `from ${source}`);
  }
}

function datagramsFrom(address: string, packets: readonly Dissection[]): number {
  return packets.filter(
    ({ source, opcode }) => source === address && opcode === UD_SEND_ONLY_WITH_IMMEDIATE,
  ).length;
}

async function ourServer(lab: Lab, load: Load): Promise<void> {
  const own = lab.host[load.family];
  const serving = startSample(lab, `-b ${own} ${lettersOf(load)}`);
  try {
    await serving.waitForOutput(/^listening/, START_TIMEOUT_MS);
    const client = await lab.guest(0).run(`udaddy -s ${own} ${lettersOf(load)}`, {
      timeoutMs: RUN_TIMEOUT_MS,
    });
    assertComplete(client, serving);
    const served = await serving.finish();
    assert.equal(served.code, 0, transcript(served));
    assert.match(served.stdout, new RegExp(`^replied to ${load.connections} endpoints`, 'm'));
  } finally {
    serving.kill();
  }
}

async function ourClient(lab: Lab, load: Load): Promise<void> {
  const guest = lab.guest(0);
  const own = guest[load.family];
  const serving = guest.spawn(`stdbuf -oL udaddy -b ${own} ${lettersOf(load)}`);
  try {
    await serving.waitForOutput(/starting server/, START_TIMEOUT_MS);
    // It says so before it listens.
    await settled(LISTENS_MS);
    const client = await startSample(lab, `-s ${own} ${lettersOf(load)}`).finish(RUN_TIMEOUT_MS);
    const told = `${transcript(client)}${serving.stdout}${serving.stderr}`;
    assert.equal(client.stdout, `${load.connections * load.messages} replies came\n`, told);
    assertComplete(await serving.finish(), serving);
  } finally {
    serving.kill();
  }
}

async function closedKernelPort(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const packets = await captured(lab, guest, 'udaddy-closed-kernel-port', async () => {
    const result = await startSample(lab, `-s ${guest.ipv4} -p ${CLOSED_PORT}`).finish();
    assert.equal(result.code, 1, transcript(result));
    assert.match(result.stderr, /nobody serves datagrams there/);
  });
  assert.deepEqual(cmSequence(packets), [SIDR_REQ, SIDR_REP]);
  assert.equal(packets.length, 2);
}

async function closedPortOfOurs(lab: Lab): Promise<void> {
  const serving = startSample(lab, `-b ${lab.host.ipv4} -p ${CLOSED_PORT}`);
  try {
    await serving.waitForOutput(/^listening/, START_TIMEOUT_MS);
    const result = await lab.guest(0).run(`udaddy -s ${lab.host.ipv4}`);
    assert.match(result.stdout, /RDMA_CM_EVENT_UNREACHABLE, error: 1\b/, transcript(result));
  } finally {
    await serving.stop('SIGKILL');
  }
}

function lettersOf({ connections, messages, sizeBytes }: Load): string {
  return `-c ${connections} -C ${messages} -S ${sizeBytes}`;
}

/** The counterpart says so, and how it went. */
function assertComplete(result: RunResult, other: RunningCommand): void {
  const told = `${transcript(result)}; the other side: ${other.stdout}${other.stderr}`;
  assert.match(result.stdout, /data transfers complete[^]*return status 0/, told);
  assert.equal(result.code, 0, told);
}

function startSample(lab: Lab, letters: string): RunningCommand {
  const main = join(repositoryRoot, 'dist', 'samples', 'udaddy', 'main.js');
  return lab.host.spawn(`exec '${process.execPath}' --enable-source-maps '${main}' ${letters}`);
}
