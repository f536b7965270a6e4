// Programs of the cases where the verbs provider in a guest meets something else: ours there, C
// programs in the other guest, ours over softroce on the host; and how two of them are run.
import assert from 'node:assert/strict';
import { join } from 'node:path';

import { becomesTrue } from '../machine-time.js';
import type { Machine, RunResult } from '../command.js';
import type { Lab } from '../lab.js';
import { repositoryRoot } from '../paths.js';
import { addressOf, type Family } from '../verbs/scene.js';
import { transcript } from './captured.js';
import { udapl } from './dapl.js';

/** Under emulation Node takes seconds to start, and a minute on a machine with other work. */
const START_TIMEOUT_MS = 180_000;
const RUN_TIMEOUT_MS = 240_000;

/** One side of a conversation. */
export interface Program {
  readonly machine: Machine;
  readonly command: string;
  /** What it prints in the end, however many lines of it. */
  readonly passed: RegExp;
  /** What it must not have printed. */
  readonly complaint?: RegExp;
}

export interface Server extends Program {
  /** What a server prints when it listens, or is about to. */
  readonly listening: RegExp;
  /** A shell condition that holds when it does listen; for programs that speak too early. */
  readonly until?: string;
  /** Throws when what the two have printed does not agree. */
  readonly agrees?: (served: string, asked: string) => void;
}

/** Runs a server and a client to their ends; each must say that all went well. */
export async function converse(server: Server, client: Program): Promise<void> {
  const serving = server.machine.spawn(server.command);
  try {
    await serving.waitForOutput(server.listening, START_TIMEOUT_MS);
    if (server.until !== undefined) await holds(server.machine, server.until);
    const asking = client.machine.spawn(client.command);
    const asked = await asking.finish(RUN_TIMEOUT_MS).catch((error: unknown) => {
      throw new Error(`${String(error)}; the server: ${serving.stdout}${serving.stderr}`);
    });
    assertPassed('client', client, asked, `${serving.stdout}${serving.stderr}`);
    const served = await serving.finish(RUN_TIMEOUT_MS);
    assertPassed('server', server, served, asked.stdout);
    server.agrees?.(served.stdout, asked.stdout);
  } finally {
    serving.kill();
  }
}

async function holds(machine: Machine, condition: string): Promise<void> {
  const isSo = async (): Promise<boolean> => (await machine.run(condition)).code === 0;
  await becomesTrue(isSo, START_TIMEOUT_MS, () => `never true: ${condition}`);
}

function assertPassed(role: string, program: Program, result: RunResult, other: string): void {
  const told = `${role}: ${transcript(result)}; the other side: ${other.slice(-1500)}`;
  assert.equal(result.code, 0, told);
  assert.match(result.stdout, program.passed, told);
  const { complaint } = program;
  if (complaint !== undefined) assert.doesNotMatch(result.stdout + result.stderr, complaint, told);
}

/** The condition that a process listens by librdmacm. */
export const listensByCm = (process: string): string =>
  `rdma resource show cm_id | grep LISTEN | grep -q 'comm ${process}'`;

/** The condition that somebody listens by TCP. */
export const listensByTcp = (port: number): string => `ss -Hltn sport = :${port} | grep -q .`;

/** A compiled program of ours; the guest sees the host's files. */
export const node = (...path: string[]): string =>
  `exec '${process.execPath}' '${join(repositoryRoot, 'dist', ...path)}'`;

export const sample = (name: string): string => node('samples', name, 'main.js');

/** Where the three sides are, by family. */
export interface Places {
  readonly ours: Machine;
  readonly theirs: Machine;
  readonly ourAddress: string;
  readonly theirAddress: string;
  /** The beginning of a command line that runs a program of uDAPL. */
  readonly udapl: string;
}

/** Ours in the first guest, C programs in the second. */
export async function placesOf(lab: Lab, family: Family): Promise<Places> {
  const [ours, theirs] = [lab.guest(0), lab.guest(1)];
  return {
    ours,
    theirs,
    ourAddress: addressOf(ours, family),
    theirAddress: addressOf(theirs, family),
    udapl: await udapl(theirs),
  };
}
