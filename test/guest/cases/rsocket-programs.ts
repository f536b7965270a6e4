// librdmacm's own programs over rsockets, against ours (test/guest/rsocket) on the host.
import assert from 'node:assert/strict';
import { join } from 'node:path';

import type { RunningCommand, RunResult } from '../command.js';
import type { Guest } from '../guest.js';
import type { Lab } from '../lab.js';
import { repositoryRoot } from '../paths.js';
import type { Case, InteropRow } from '../suite.js';
import { transcript } from './captured.js';

export const START_TIMEOUT_MS = 30_000;
export const TRANSFER_TIMEOUT_MS = 120_000;
/** rstream's own sizes, with those between: 64 B to 6 MiB. */
const ALL_SIZES_BYTES = Array.from({ length: 17 }, (_, n) => [2 ** (6 + n), 3 * 2 ** (5 + n)])
  .flat()
  .filter((size) => size !== 96);
const ROLES = ['server', 'client'] as const;
type Role = (typeof ROLES)[number];
export type Family = 'ipv4' | 'ipv6';

interface Streaming {
  readonly program: 'rstream' | 'riostream';
  readonly role: Role;
  readonly family: Family;
  readonly sizesBytes: readonly number[];
  readonly transfers: number;
  readonly rounds: number;
  /** `b` blocks, `n` polls, `a` sleeps in poll. */
  readonly mode: string;
}

const STREAMS: readonly (Streaming & Pick<Case, 'full'>)[] = [
  ...ROLES.flatMap((role) =>
    (['rstream', 'riostream'] as const).map((program) => ({
      ...{ program, role, family: 'ipv4' as const, mode: 'b' },
      ...{ sizesBytes: [3000, 300_000], transfers: 2, rounds: 3 },
    })),
  ),
  ...ROLES.flatMap((role) =>
    (['rstream', 'riostream'] as const).map((program) => ({
      ...{ program, role, family: 'ipv6' as const, mode: 'b', full: true },
      ...{ sizesBytes: ALL_SIZES_BYTES, transfers: 3, rounds: 2 },
    })),
  ),
  ...ROLES.map((role) => ({
    ...{ program: 'rstream' as const, role, family: 'ipv4' as const, mode: 'a', full: true },
    ...{ sizesBytes: ALL_SIZES_BYTES, transfers: 3, rounds: 2 },
  })),
];

export function rsocketProgramCases(lab: Lab, version: string): Case[] {
  return [
    ...STREAMS.map((streaming): Case => {
      const { program, role, family, sizesBytes, mode, full = false } = streaming;
      const sizes = `${sizesBytes.length} sizes up to ${Math.max(...sizesBytes)} B`;
      return {
        name: `rsocket: ${program}, our ${role}, ${textOf(family)}, ${sizes}, mode ${mode}`,
        row: rowOf(version, program, `${role}, ${sizes}`, family),
        full,
        timeoutMs: TRANSFER_TIMEOUT_MS,
        run: () => stream(lab, streaming),
      };
    }),
    ...ROLES.map((role): Case => ({
      name: `rsocket: rcopy, our ${role}, 100 MB`,
      row: rowOf(version, 'rcopy', `${role}, 100 MB, digest`, 'ipv4'),
      full: true,
      timeoutMs: TRANSFER_TIMEOUT_MS,
      run: () => copy(lab, role, 100_000_000),
    })),
    ...ROLES.map((role): Case => ({
      name: `rsocket: rcopy, our ${role}, 5 MB`,
      row: rowOf(version, 'rcopy', `${role}, 5 MB, digest`, 'ipv4'),
      run: () => copy(lab, role, 5_000_000),
    })),
  ];
}

export function rowOf(
  version: string,
  counterpart: string,
  role: string,
  family: Family,
): InteropRow {
  const transport = `rdma_cm, RC, ${textOf(family)}, rsockets`;
  return { counterpart, version, role, transport, mtuBytes: 4096 };
}

export function textOf(family: Family): string {
  return family === 'ipv4' ? 'IPv4' : 'IPv6';
}

/** Starts our end on the host. */
export function startOurs(lab: Lab, command: string): RunningCommand {
  const main = join(repositoryRoot, 'dist', 'test', 'guest', 'rsocket', 'main.js');
  return lab.host.spawn(`exec '${process.execPath}' --enable-source-maps '${main}' ${command}`);
}

/** Our server listens. */
export async function listening(ours: RunningCommand): Promise<RunningCommand> {
  await ours.waitForOutput(/^listening$/m, START_TIMEOUT_MS);
  return ours;
}

/**
 * A program of librdmacm listens: it does not say so, and rsockets are in no list of the kernel.
 */
export async function kernelListens(guest: Guest, port: number): Promise<void> {
  const listed = `rdma resource show cm_id | grep -q 'LISTEN.*:${port}'`;
  await guest.holds(listed, `nothing listens on ${port}`);
}

export function assertEnded(what: string, result: RunResult): void {
  assert.equal(result.code, 0, `${what}: ${transcript(result)}`);
}

async function stream(lab: Lab, streaming: Streaming): Promise<void> {
  const { program, role, family, sizesBytes, transfers, rounds, mode } = streaming;
  await lab.setPathMtu(4096);
  const guest = lab.guest(0);
  for (const size of sizesBytes) {
    const options = `-S ${size} -C ${transfers} -I ${rounds} -T v -T ${mode}`;
    const sizes = `${size} ${transfers} ${rounds}`;
    if (role === 'server') {
      const ours = await listening(
        startOurs(lab, `${program}-server ${lab.host[family]} ${sizes}`),
      );
      const theirs = guest.spawn(`${program} -s ${lab.host[family]} ${options}`);
      assertEnded(`${program} ${size}`, await theirs.finish(TRANSFER_TIMEOUT_MS));
      assertEnded(`ours ${size}`, await ours.finish(TRANSFER_TIMEOUT_MS));
    } else {
      const theirs = guest.spawn(`${program} -b ${guest[family]} ${options}`);
      await kernelListens(guest, 7471);
      const ours = startOurs(
        lab,
        `${program}-client ${lab.host[family]} ${guest[family]} ${sizes}`,
      );
      assertEnded(`ours ${size}`, await ours.finish(TRANSFER_TIMEOUT_MS));
      assertEnded(`${program} ${size}`, await theirs.finish(TRANSFER_TIMEOUT_MS));
    }
  }
}

async function copy(lab: Lab, role: Role, bytes: number): Promise<void> {
  await lab.setPathMtu(4096);
  const guest = lab.guest(0);
  const file = '/tmp/rcopied';
  if (role === 'server') {
    await guest.run(`head -c ${bytes} /dev/urandom > ${file}`, { timeoutMs: TRANSFER_TIMEOUT_MS });
    const ours = await listening(startOurs(lab, `rcopy-server ${lab.host.ipv4}`));
    const theirs = await guest.run(`rcopy ${file} ${lab.host.ipv4}:/somewhere`, {
      timeoutMs: TRANSFER_TIMEOUT_MS,
    });
    assertEnded('rcopy', theirs);
    const served = await ours.finish(TRANSFER_TIMEOUT_MS);
    assertEnded('ours', served);
    assert.equal(
      served.stdout.trim().split('\n').at(-1),
      `/somewhere ${await digestOf(guest, file)}`,
    );
  } else {
    const theirs = guest.spawn('rcopy');
    await kernelListens(guest, 7427);
    const command = `rcopy-client ${lab.host.ipv4} ${guest.ipv4} ${bytes} ${file}`;
    const ours = await startOurs(lab, command).finish(TRANSFER_TIMEOUT_MS);
    assertEnded('ours', ours);
    assert.equal(await digestOf(guest, file), ours.stdout.trim());
    await theirs.stop();
  }
  await guest.run(`rm -f ${file}`);
}

async function digestOf(guest: Guest, file: string): Promise<string> {
  const { stdout } = await guest.run(`sha256sum ${file}`, { timeoutMs: TRANSFER_TIMEOUT_MS });
  return stdout.slice(0, 64);
}
