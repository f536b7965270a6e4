// Entry of run.sh: gets what the lab needs, goes into the sandbox, runs what was asked for there.
import { cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { labCases, powerCutCase } from './cases/lab.js';
import { differentialCases } from './cases/differential.js';
import { faultCases, powerOffCase } from './cases/faults.js';
import { lostMessageCases } from './cases/lost-messages.js';
import { memoryCases } from './cases/memory.js';
import { operationsCases } from './cases/operations.js';
import { packetPortCases } from './cases/packet-port.js';
import { refusalCases } from './cases/refusals.js';
import { kernelToKernelCases, lossyCases, rpingCases } from './cases/rping.js';
import { ucmatoseCases } from './cases/ucmatose.js';
import { udaddyCases } from './cases/udaddy.js';
import { verbsCases } from './cases/verbs.js';
import { bootShell } from './guest.js';
import type { Guest } from './guest.js';
import { interopTable } from './interop-table.js';
import { ensureKernel } from './kernel.js';
import type { Kernel } from './kernel.js';
import { Lab, networkFor } from './lab.js';
import { ensurePackages } from './packages.js';
import { reportDir, repositoryRoot } from './paths.js';
import { enterSandbox, inSandbox, runDir, runInSandbox } from './sandbox.js';
import { runCases } from './suite.js';

const INTERRUPTED = 130;
const EXEC_TIMEOUT_MS = 600_000;

const log = (line: string): void => {
  process.stderr.write(`guest: ${line}\n`);
};

async function outside(): Promise<number> {
  const obstacle = ensurePackages(log);
  if (obstacle !== undefined) {
    log(`SKIPPED: nothing was tested against a real kernel: ${obstacle}`);
    return process.env['CI'] === 'true' ? 1 : 0;
  }
  ensureKernel(log);
  return runInSandbox();
}

async function inside(verb: string, args: readonly string[]): Promise<number> {
  const kernel = ensureKernel(log);
  switch (verb) {
    case 'shell':
      return shell(kernel);
    case 'exec':
      return exec(kernel, args.join(' '));
    case 'cases':
      return cases(kernel, args.join(' '));
    default:
      log(`unknown verb ${verb}: cases, shell or exec`);
      return 2;
  }
}

async function shell(kernel: Kernel): Promise<number> {
  log('rxe0 is on eth0; the host is 10.77.0.1 and fd77::1; exit ends the guest');
  for (const config of networkFor(kernel, 1)) await bootShell(config);
  return 0;
}

async function exec(kernel: Kernel, command: string): Promise<number> {
  const guest = (await Lab.start(kernel, 1)).guest(0);
  const result = await guest.run(command, { timeoutMs: EXEC_TIMEOUT_MS });
  process.stdout.write(result.stdout);
  process.stderr.write(result.stderr);
  await guest.powerOff();
  return result.code ?? 1;
}

/** Runs the cases whose name contains `filter`; an empty one means all, and writes the table. */
async function cases(kernel: Kernel, filter: string): Promise<number> {
  const start = performance.now();
  const lab = await Lab.start(kernel, 2);
  log(`${lab.guests.length} guests up after ${((performance.now() - start) / 1000).toFixed(1)} s`);
  const version = await counterpartVersion(lab.guest(0));
  const all = [
    ...labCases(lab),
    ...packetPortCases(lab, version),
    ...kernelToKernelCases(lab, version),
    ...rpingCases(lab, version),
    ...lossyCases(lab, version),
    ...ucmatoseCases(lab, version),
    ...udaddyCases(lab, version),
    ...refusalCases(lab, version),
    ...memoryCases(lab, version),
    ...operationsCases(lab, version),
    ...verbsCases(lab, version),
    ...differentialCases(lab, version),
    ...lostMessageCases(lab, version),
    ...faultCases(lab, version),
    powerCutCase(lab),
    powerOffCase(lab, version),
  ];
  const chosen = all.filter(({ name }) => name.includes(filter));
  const outcomes = await runCases(chosen, (line) => {
    process.stdout.write(`${line}\n`);
  });
  await lab.powerOff();
  const allPassed = outcomes.length > 0 && outcomes.every(({ passed }) => passed);
  if (!allPassed || process.env['DAPL_GUEST_KEEP'] !== undefined) keepEvidence();
  if (filter === '')
    writeFileSync(join(repositoryRoot, 'docs', 'interop.md'), interopTable(outcomes));
  return allPassed ? 0 : 1;
}

async function counterpartVersion(guest: Guest): Promise<string> {
  const tools = await guest.run("dpkg-query -W -f '${Version}' rdmacm-utils; echo; uname -r");
  const [rdmaCore = '?', kernel = '?'] = tools.stdout.trim().split('\n');
  return `rdma-core ${rdmaCore}, Linux ${kernel}`;
}

/** The sandbox's files end with it: captures and consoles of a failed run are copied out. */
function keepEvidence(): void {
  const target = join(reportDir, new Date().toISOString().replaceAll(':', '-'));
  mkdirSync(target, { recursive: true });
  for (const name of readdirSync(runDir)) {
    if (/\.(pcap|console)$/.test(name)) cpSync(join(runDir, name), join(target, name));
  }
  log(`captures and consoles are in ${target}`);
}

async function main(): Promise<number> {
  const [verb = 'cases', ...args] = process.argv.slice(2);
  if (!inSandbox()) return outside();
  enterSandbox(() => process.exit(INTERRUPTED));
  return inside(verb, args);
}

try {
  process.exit(await main());
} catch (error) {
  log(error instanceof Error ? error.message : String(error));
  process.exit(1);
}
