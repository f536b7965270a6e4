// Lives of connections over the verbs provider in a guest, on its rxe0: many of them, processes and
// threads that end, a link and a device that go under load. What runs is test/guest/life.
import assert from 'node:assert/strict';
import { join } from 'node:path';

import { paused } from '../../support/patience.js';
import type { RunningCommand } from '../command.js';
import type { Guest } from '../guest.js';
import type { Lab } from '../lab.js';
import type { Resources } from '../life/resources.js';
import { repositoryRoot } from '../paths.js';
import type { Case, InteropRow } from '../suite.js';
import { transcript } from './captured.js';

const MAIN = join(repositoryRoot, 'dist', 'test', 'guest', 'life', 'main.js');
/** Young objects get little room: what that grows by, up to 48 MiB, would hide what is kept. */
const FLAGS = '--expose-gc --max-semi-space-size=1 --enable-source-maps';
const PROGRAM = `exec '${process.execPath}' ${FLAGS} '${MAIN}'`;
/** Under emulation Node takes seconds to start, and a minute on a machine with other work. */
const TIMEOUT_MS = 600_000;
const CYCLES = { small: 500, full: 10_000 } as const;
const FULL_TIMEOUT_MS = 3_600_000;
/** What a heap may have grown by without anything being kept. */
const SLACK_BYTES = 16 << 20;
const OUTAGE_MS = 1000;

export function verbsLifeCases(lab: Lab, version: string): Case[] {
  const guest = lab.guest(0);
  const one = (name: string, transport: string, run: () => Promise<void>): Case => ({
    name: `verbs: ${name}`,
    row: rowOf(version, transport),
    timeoutMs: TIMEOUT_MS,
    run,
  });
  const cycles = (['small', 'full'] as const).map((size): Case => {
    const times = CYCLES[size];
    const timeoutMs = size === 'full' ? FULL_TIMEOUT_MS : TIMEOUT_MS;
    const name = `${times} connections one after the other, nothing left`;
    const run = (): Promise<void> => manyConnections(guest, times, timeoutMs);
    return {
      ...one(name, `rdma_cm, RC, IPv4, ${times} in sequence`, run),
      full: size === 'full',
      isLong: true,
      timeoutMs,
    };
  });
  return [
    ...cycles,
    one('two worker threads connect with each other', 'rdma_cm, RC, IPv4, threads', () =>
      runToEnd(guest, 'workers').then((text) => {
        assert.match(text, /^client 1: DISCONNECTED$/m);
        assert.match(text, /^succeeded: 300$/m);
      }),
    ),
    {
      ...one(
        'the peer is killed under load, the next one transfers',
        'rdma_cm, RC, IPv4, peer killed',
        () => killed(guest),
      ),
      isLong: true,
    },
    {
      ...one('link down and up under load', 'rdma_cm, RC, IPv4, eth0 down', () => linkDown(guest)),
      full: true,
    },
    {
      ...one('device removed under load', 'rdma_cm, RC, IPv4, rdma link delete', () =>
        removed(guest),
      ),
      full: true,
    },
  ];
}

function rowOf(version: string, transport: string): InteropRow {
  const role = 'our verbs provider, both ends';
  return {
    counterpart: 'rdma_rxe (libibverbs, librdmacm)',
    version,
    role,
    transport,
    mtuBytes: 1024,
  };
}

function start(guest: Guest, mode: string): RunningCommand {
  const words = mode.includes(' ') ? mode : `${mode} ${guest.ipv4}`;
  return guest.spawn(`${PROGRAM} ${words}`, { cwd: repositoryRoot });
}

/** It ends by itself, with everything closed. */
async function finished(command: RunningCommand, timeoutMs: number = TIMEOUT_MS): Promise<string> {
  const result = await command.finish(timeoutMs);
  assert.equal(result.code, 0, transcript(result));
  assert.match(result.stdout, /^done$/m, transcript(result));
  return result.stdout;
}

function runToEnd(guest: Guest, mode: string, timeoutMs: number = TIMEOUT_MS): Promise<string> {
  return finished(start(guest, mode), timeoutMs);
}

async function manyConnections(guest: Guest, times: number, timeoutMs: number): Promise<void> {
  const before = await kernelObjects(guest);
  const text = await runToEnd(guest, `cycles ${guest.ipv4} ${times}`, timeoutMs);
  const [warm, end] = [...text.matchAll(/^after \d+: (.*)$/gm)].map(
    ([, json]) => JSON.parse(json ?? '') as Resources,
  );
  assert.ok(warm && end, text);
  assert.deepEqual(end.objects, warm.objects, 'objects of the kernel');
  const grown = end.rssBytes - warm.rssBytes;
  assert.ok(grown < SLACK_BYTES, `memory grew by ${grown} bytes: ${text}`);
  assert.equal(await kernelObjects(guest), before, 'after the end');
}

async function kernelObjects(guest: Guest): Promise<string> {
  return (await guest.run('rdma resource show rxe0')).stdout.trim();
}

async function killed(guest: Guest): Promise<void> {
  const server = start(guest, `serve ${guest.ipv4} 2`);
  await server.waitForOutput(/^listening$/m, TIMEOUT_MS);
  const victim = start(guest, `drive ${guest.ipv4} forever`);
  await victim.waitForOutput(/^under load$/m, TIMEOUT_MS);
  victim.kill('SIGKILL');
  await server.waitForOutput(/^client 1: (BROKEN|DISCONNECTED)$/m, TIMEOUT_MS);
  assert.match(await runToEnd(guest, `drive ${guest.ipv4} 100`), /^succeeded: 100$/m);
  assert.match(await finished(server), /^client 2: DISCONNECTED$/m);
}

async function linkDown(guest: Guest): Promise<void> {
  const program = start(guest, 'link');
  await program.waitForOutput(/^under load$/m, TIMEOUT_MS);
  try {
    await guest.linkDown();
    await paused(OUTAGE_MS);
  } finally {
    await guest.linkUp();
  }
  program.kill('SIGUSR1');
  const text = await finished(program);
  assert.match(text, /^again: 100$/m);
  assert.match(text, /^closed$/m);
}

/** The kernel's removal waits until the last process has closed the device: it must be told. */
async function removed(guest: Guest): Promise<void> {
  const program = start(guest, 'removal');
  try {
    await program.waitForOutput(/^under load$/m, TIMEOUT_MS);
    const removal = guest.spawn('rdma link delete rxe0');
    const text = await finished(program);
    assert.equal((await removal.finish(TIMEOUT_MS)).code, 0);
    assert.equal(text.match(/^ended: .*"end":"(BROKEN|DISCONNECTED)"/gm)?.length, 2, text);
  } finally {
    await guest.run('rdma link add rxe0 type rxe netdev eth0');
    await guest.linkUp();
  }
}
