// What a run leaves when it is interrupted: nothing. And the shell that a developer gets.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

import { becomesTrue } from '../machine-time.js';
import type { RunningCommand } from '../command.js';
import type { Lab } from '../lab.js';
import { cacheDir, repositoryRoot } from '../paths.js';
import type { Case } from '../suite.js';

const MARK = 'DAPL_GUEST_TEST';
const BOOT_TIMEOUT_MS = 120_000;
const END_TIMEOUT_MS = 20_000;

export function leftoverCases(lab: Lab): Case[] {
  return [
    {
      name: 'lab: a run that is interrupted, terminated or killed leaves nothing behind',
      timeoutMs: 3 * (BOOT_TIMEOUT_MS + END_TIMEOUT_MS),
      run: async () => {
        for (const signal of ['SIGINT', 'SIGTERM', 'SIGKILL'] as const) await cut(lab, signal);
      },
    },
    {
      name: 'lab: a shell in a guest, on a terminal',
      timeoutMs: 2 * BOOT_TIMEOUT_MS,
      run: () => shell(lab),
    },
  ];
}

/** Another run, inside this one, up to the boot of its guest. */
async function cut(lab: Lab, signal: NodeJS.Signals): Promise<void> {
  const mark = randomUUID();
  const before = traces();
  const run = startRun(lab, mark, "exec 'sleep 1000'");
  try {
    await until(() => processesOf(mark).some(({ name }) => name.startsWith('qemu')), run);
    const namespaces = new Set(processesOf(mark).map(({ network }) => network));
    assert.ok(namespaces.size > 1, 'the guest is in no namespace of its own');
    run.kill(signal);
    const { code } = await run.finish(END_TIMEOUT_MS);
    assert.notEqual(code, 0, signal);
    await until(() => processesOf(mark).length === 0);
    assert.deepEqual(traces(), before, signal);
  } finally {
    run.kill();
  }
}

function startRun(lab: Lab, mark: string, verb: string): RunningCommand {
  return lab.host.spawn(`exec ${runCommand(mark, verb)}`);
}

function runCommand(mark: string, verb: string): string {
  const main = join(repositoryRoot, 'dist', 'test', 'guest', 'main.js');
  return `env -u DAPL_GUEST_SANDBOX ${MARK}=${mark} '${process.execPath}' '${main}' ${verb}`;
}

/** What could outlive processes: mounts, links that are not of this run, files in the cache. */
function traces(): readonly string[] {
  const links = readdirSync('/sys/class/net').filter((name) => !/^(tap|lab)\d/.test(name));
  return [readFileSync('/proc/self/mounts', 'utf8'), ...links, ...readdirSync(cacheDir)];
}

interface MarkedProcess {
  readonly name: string;
  readonly network: string;
}

function processesOf(mark: string): MarkedProcess[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        if (!readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`${MARK}=${mark}`)) return [];
        const name = readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
        return [{ name, network: readlinkSync(`/proc/${pid}/ns/net`) }];
      } catch {
        // It has ended while we were looking.
        return [];
      }
    });
}

async function until(isSo: () => boolean, run?: RunningCommand): Promise<void> {
  const output = (): string => `${run?.stdout ?? ''}${run?.stderr ?? ''}`;
  await becomesTrue(isSo, BOOT_TIMEOUT_MS, () => `never came: ${output()}`);
}

/**
 * As `npm run guest`, with a person who repeats himself until he is heard: what is typed before
 * there is a shell may be lost or cut.
 */
async function shell(lab: Lab): Promise<void> {
  const words = 'echo I am $(hostname) $(test -t 0 && echo here)';
  const typing = `for i in $(seq 60); do for j in 1 2 3; do echo '${words}'; done; sleep 3; done`;
  const ending = 'for i in $(seq 90); do sleep 5; echo exit; done';
  const terminal = `script -qfec "${runCommand(randomUUID(), 'shell')}" /dev/null`;
  const session = await lab.host.run(`{ ${typing} & ${ending}; } 2>/dev/null | ${terminal}`, {
    timeoutMs: BOOT_TIMEOUT_MS,
    cwd: repositoryRoot,
  });
  const told = session.stdout.slice(-6000);
  assert.match(session.stdout, /I am guest[\d-]+ here/, told);
  assert.doesNotMatch(session.stdout, /panic/i, told);
}
