// Management datagrams: the kernel's ib_mad under our verbs provider, and the MAD module of ours
// over softroce, against each other; transfers by the kernel's RMPP and by our own.
import assert from 'node:assert/strict';
import { join } from 'node:path';

import type { Machine, RunningCommand } from '../command.js';
import type { Lab } from '../lab.js';
import { repositoryRoot } from '../paths.js';
import type { Case, InteropRow } from '../suite.js';
import { addressOf, FAMILIES, type Family } from '../verbs/scene.js';

const BYTES = 300_000;
const START_TIMEOUT_MS = 60_000;
const ASK_TIMEOUT_MS = 80_000;
/** Each program is a Node that starts in the guest, under emulation. */
const CASE_TIMEOUT_MS = 240_000;
const PEER = `node ${join(repositoryRoot, 'dist/test/guest/peer/mad.js')}`;
const SAMPLE = `node ${join(repositoryRoot, 'dist/samples/mad/main.js')}`;
/** The table follows the addresses after a while. */
const GIDS = 'grep -cv ":0000:0000:0000:0000:0000:0000:0000$"';

/** On IPv4 the kernel recognizes no response, so what it would have to match is refused at once. */
const PLAIN_ANSWERS = {
  IPv4: [
    'plain: DAT_MODEL_NOT_SUPPORTED',
    'unknown class: DAT_MODEL_NOT_SUPPORTED',
    'silence: DAT_MODEL_NOT_SUPPORTED',
  ],
  IPv6: ['plain: plain', 'unknown class: status 12', 'silence: DAT_TIMEOUT_EXPIRED'],
} as const;

export function madCases(lab: Lab, version: string): Case[] {
  return [
    ...FAMILIES.flatMap((family) => [
      {
        name: `MADs over umad, asked by our module, ${family}`,
        row: rowOf(version, 'our module asks, kernel and verbs provider answer', family, 'ours'),
        full: family === 'IPv6',
        timeoutMs: CASE_TIMEOUT_MS,
        run: () => softroceAsks(lab, family),
      },
      {
        name: `MADs over umad, answered by our module, ${family}`,
        row: rowOf(version, 'kernel and verbs provider ask, our module answers', family, 'ours'),
        full: family === 'IPv4',
        timeoutMs: CASE_TIMEOUT_MS,
        run: () => softroceAnswers(lab, family, lab.guest(0)),
      },
      {
        name: `MADs over umad, kernel to kernel, ${family}`,
        row: rowOf(version, 'verbs provider at both ends', family, 'ours'),
        full: true,
        guests: 2,
        timeoutMs: CASE_TIMEOUT_MS,
        run: () => kernelToKernel(lab, family),
      },
    ]),
    {
      name: "MADs over umad, the kernel's RMPP against ours",
      row: rowOf(version, 'verbs provider on a port without IPv4', 'IPv6', "the kernel's"),
      guests: 2,
      timeoutMs: CASE_TIMEOUT_MS,
      run: () => kernelRmpp(lab),
    },
  ];
}

/** A device that is removed: later, for the guest is then without one for a while. */
export function madRemovalCase(lab: Lab): Case {
  return {
    name: 'MADs over umad: a request ends when the device is removed',
    timeoutMs: CASE_TIMEOUT_MS,
    run: () => removal(lab),
  };
}

function rowOf(version: string, role: string, family: Family, rmpp: string): InteropRow {
  const transport = `MAD, RMPP ${rmpp}, ${family}`;
  return { counterpart: 'ib_umad', version, role, transport, mtuBytes: 4096 };
}

async function softroceAsks(lab: Lab, family: Family): Promise<void> {
  const [host, guest] = [lab.host, lab.guest(0)];
  const server = await served(guest, `${PEER} serve ${addressOf(guest, family)}`);
  const to = `--from ${addressOf(host, family)} --to ${addressOf(guest, family)}`;
  const summary = await host.run(`${SAMPLE} query summary ${to} --timeout 20000`);
  assert.ok(summary.stdout.startsWith(`${guest.name}: linux`), summary.stdout + summary.stderr);
  const text = await host.run(`${SAMPLE} query text --bytes ${BYTES} ${to} --timeout 30000`, {
    timeoutMs: ASK_TIMEOUT_MS,
  });
  assert.equal(text.stdout.trim().length, BYTES, text.stderr);
  await server.stop('SIGTERM');
}

async function softroceAnswers(lab: Lab, family: Family, guest: Machine): Promise<void> {
  const { host } = lab;
  const server = await served(host, `${SAMPLE} serve --listen ${addressOf(host, family)}`);
  const lines = await asked(guest, family, addressOf(host, family));
  assert.deepEqual(lines.slice(1, 3), [`text: ${BYTES} bytes`, 'listing: INVALID_ATTRIBUTE_VALUE']);
  // Nobody serves the plain class there: IBTA 13.4.7.
  if (family === 'IPv6') assert.equal(lines[3], 'plain: \0\0\0\0\0');
  assert.equal(lines[4], PLAIN_ANSWERS[family][1]);
  await server.stop('SIGTERM');
}

async function kernelToKernel(lab: Lab, family: Family): Promise<void> {
  const [server, client] = [lab.guest(0), lab.guest(1)];
  const running = await served(server, `${PEER} serve ${addressOf(server, family)}`);
  const lines = await asked(client, family, addressOf(server, family));
  assert.deepEqual(lines, [
    `summary: ${server.name}`,
    `text: ${BYTES} bytes`,
    'listing: INVALID_ATTRIBUTE_VALUE',
    ...PLAIN_ANSWERS[family],
  ]);
  await running.stop('SIGTERM');
}

/** Without an IPv4 address the provider leaves transfers to the kernel. */
async function kernelRmpp(lab: Lab): Promise<void> {
  const [kernel, other] = [lab.guest(1), lab.guest(0)];
  const device = '/sys/class/infiniband/rxe0/ports/1/gids';
  const becomes = (count: number): Promise<void> => {
    const isSo = `[ "$(cat ${device}/* 2>/dev/null | ${GIDS})" = ${count} ]`;
    return kernel.holds(isSo, `has not ${count} GIDs`);
  };
  const without = await kernel.run(`ip addr del ${kernel.ipv4}/24 dev eth0`);
  assert.equal(without.code, 0, without.stderr);
  await becomes(2);
  try {
    await softroceAnswers(lab, 'IPv6', kernel);
    const running = await served(kernel, `${PEER} serve ${kernel.ipv6}`);
    const lines = await asked(other, 'IPv6', kernel.ipv6);
    assert.deepEqual(lines.slice(0, 2), [`summary: ${kernel.name}`, `text: ${BYTES} bytes`]);
    await running.stop('SIGTERM');
  } finally {
    const again = await kernel.run(`ip addr add ${kernel.ipv4}/24 dev eth0`);
    assert.equal(again.code, 0, again.stderr);
    await becomes(3);
  }
}

async function removal(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const { host } = lab;
  const server = await served(host, `${SAMPLE} serve --listen ${host.ipv6}`);
  const waiting = guest.spawn(`${PEER} wait ${guest.ipv6} ${host.ipv6}`);
  await waiting.waitForOutput(/asking/, START_TIMEOUT_MS);
  const removed = await guest.run('rdma link delete rxe0');
  try {
    assert.equal(removed.code, 0, removed.stderr);
    await waiting.waitForOutput(/wait: DAT_ABORT/, START_TIMEOUT_MS);
    assert.equal((await waiting.finish(START_TIMEOUT_MS)).code, 0, waiting.stderr);
  } finally {
    await guest.run('rdma link add rxe0 type rxe netdev eth0; sleep 1');
    await server.stop('SIGTERM');
  }
}

async function served(machine: Machine, command: string): Promise<RunningCommand> {
  const running = machine.spawn(command);
  await running.waitForOutput(/serving/, START_TIMEOUT_MS);
  return running;
}

async function asked(guest: Machine, family: Family, to: string): Promise<string[]> {
  const own = addressOf(guest, family);
  const result = await guest.run(`${PEER} ask ${own} ${to} ${BYTES}`, {
    timeoutMs: ASK_TIMEOUT_MS,
  });
  assert.equal(result.code, 0, `${result.stdout}${result.stderr}`);
  return result.stdout.trim().split('\n');
}
