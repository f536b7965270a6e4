// iscsi-test-cu of libiscsi in a guest, over iSER, against our target on the host: one process a
// test, since a crash of the program is that test's alone.
import assert from 'node:assert/strict';
import { join } from 'node:path';

import { SKIPS } from '../../iscsi/explained.js';
import { outcomeOf, testNames, type Verdict } from '../../iscsi/outcome.js';
import type { RunningCommand } from '../command.js';
import type { Guest } from '../guest.js';
import type { Lab } from '../lab.js';
import { repositoryRoot, sourceDir } from '../paths.js';
import { runDir } from '../sandbox.js';
import type { Case } from '../suite.js';

const NAME = 'iqn.2026-01.io.dapl:suite';
const PARTS = 8;
const ALL_TESTS = 230;
const TEST_TIMEOUT_SECONDS = 60;
const SUITE_TIMEOUT_MS = 600_000;
const CASE_TIMEOUT_MS = 1_200_000;
const START_TIMEOUT_MS = 60_000;
/**
 * What the program says when an answer took more than a second, and it has given up. On a busy
 * machine that may be the machine: such a test is run again.
 */
const LATE = /revents is not POLLIN/;
const MOST_RUNS = 3;
/** In front of the output of each test, and behind it with its exit code. */
const BEGIN = '=== begin';
const END = '=== end';

const EDTL =
  'the program refuses reads of 0 bytes over iSER, or takes the length for what has come';
const TMF = 'the program crashes in task management over iSER';
/** What the iSER of libiscsi 1.19 cannot pass, against any target: 23 tests. */
const FAULTS_OF_THE_CLIENT: Readonly<Record<string, string>> = {
  'Inquiry.AllocLength': EDTL,
  'Inquiry.BlockLimits': EDTL,
  'ModeSense6.Residuals': EDTL,
  iSCSIResiduals: EDTL,
  iSCSIcmdsn: 'the program gives up after a second, and these tests wait for a timeout',
  iSCSIdatasn: 'there is no Data-Out over iSER',
  iSCSITMF: TMF,
  'Reserve6.ITNexusLoss': 'the program cannot lose a connection over iSER',
  'Reserve6.LUNReset': TMF,
  'Reserve6.TargetColdReset': TMF,
  'Reserve6.TargetWarmReset': TMF,
  'Read10.Async': 'more than its 256 buffers: the program crashes',
  'Write10.Async': 'more than its 256 buffers: the program crashes',
};

/** Failures that are not the client's; see test/iscsi/explained.ts for the same over TCP. */
const FAILURES: Readonly<Record<string, string>> = {
  'WriteSame10.UnmapUntilEnd': 'as over TCP',
};

export function iserSuiteCases(lab: Lab, version: string): Case[] {
  return Array.from({ length: PARTS }, (_, part) => ({
    name: `iser: iscsi-test-cu against our target, part ${part + 1} of ${PARTS}`,
    row: {
      counterpart: 'libiscsi, iscsi-test-cu',
      version: `libiscsi 1.19.0, ${version}`,
      role: `target: SCSI and iSCSI tests, part ${part + 1} of ${PARTS}`,
      transport: 'iSER over rdma_cm, RC, IPv4',
      mtuBytes: 4096,
    },
    full: true,
    isLong: true,
    timeoutMs: CASE_TIMEOUT_MS,
    run: () => runPart(lab, part),
  }));
}

async function runPart(lab: Lab, part: number): Promise<void> {
  const guest = lab.guest(0);
  const shim = await makeShim(lab, guest);
  const listing = await guest.run('iscsi-test-cu -l');
  const names = testNames(listing.stdout).map((name) => name.replace('ALL.', ''));
  assert.equal(names.length, ALL_TESTS, listing.stderr);
  const suites = [...new Set(names.map((name) => name.split('.')[0] as string))];
  const counts: Record<Verdict, number> = { passed: 0, skipped: 0, failed: 0 };
  const wrong: string[] = [];
  for (const suite of suites.filter((_, at) => at % PARTS === part)) {
    const chosen = names.filter((name) => name.split('.')[0] === suite);
    for (const [name, verdict, why] of await runSuite(lab, guest, shim, chosen)) {
      counts[verdict]++;
      process.stdout.write(`      ${verdict.padEnd(7)} ${name} ${why}\n`);
      if (!isExplained(name, verdict)) wrong.push(`${verdict} ${name}: ${why}`);
    }
  }
  const { passed, skipped, failed } = counts;
  process.stdout.write(`      ${passed} passed, ${skipped} skipped, ${failed} failed\n`);
  assert.deepEqual(wrong, []);
}

function isExplained(name: string, verdict: Verdict): boolean {
  const suite = name.split('.')[0] as string;
  const isIn = (table: Readonly<Record<string, string>>): boolean =>
    Object.hasOwn(table, name) || Object.hasOwn(table, suite);
  if (verdict === 'passed') return true;
  // Over iSER there is one portal here: what needs two paths has nothing to do.
  if (verdict === 'skipped') return isIn(SKIPS) || suite === 'MultipathIO' || suite === 'ReadOnly';
  return isIn(FAULTS_OF_THE_CLIENT) || isIn(FAILURES);
}

type Line = readonly [name: string, verdict: Verdict, why: string];
/** The guest's clock: tests of a slow one are told from those that wait. */
const CLOCK = 'cut -d" " -f1 /proc/uptime';

/** The tests of one suite, against a disk of their own. */
async function runSuite(
  lab: Lab,
  guest: Guest,
  shim: string,
  names: readonly string[],
): Promise<Line[]> {
  const target = await startTarget(lab);
  const lines = new Map<string, Line>();
  try {
    let left = names;
    for (let run = 1; run <= MOST_RUNS && left.length > 0; run++) {
      const command = left.map((name) => commandOf(name, shim, lab.host.ipv4)).join('\n');
      const { stdout } = await guest.run(command, { timeoutMs: SUITE_TIMEOUT_MS });
      const outputs = stdout.split(BEGIN).slice(1);
      for (const output of outputs) {
        const line = lineOf(output);
        lines.set(line[0], line);
      }
      const late = outputs.filter((output) => LATE.test(output)).map((output) => lineOf(output));
      left = late.filter(([name, verdict]) => !isExplained(name, verdict)).map(([name]) => name);
    }
    return [...lines.values()];
  } finally {
    target.kill('SIGKILL');
    await target.exited;
  }
}

function commandOf(name: string, shim: string, address: string): string {
  const url = `iser://${address}:3260/${NAME}/0`;
  const test = `iscsi-test-cu -d -n -V -t ALL.${name} ${url}`;
  const limited = `LD_PRELOAD=${shim} timeout -s KILL ${TEST_TIMEOUT_SECONDS} ${test}`;
  return (
    `echo "${BEGIN} ${name}"; begun=$(${CLOCK}); ${limited} 2>&1; code=$?; ` +
    `echo; echo "${END} $code $begun $(${CLOCK})"`
  );
}

function lineOf(text: string): Line {
  const [name = '', ...lines] = text.split('\n').map((line) => line.trim());
  const end = lines.find((line) => line.startsWith(END)) ?? '';
  const [code = NaN, begun = 0, ended = 0] = end.slice(END.length).trim().split(' ').map(Number);
  const signal = code > 128 ? `signal ${code - 128}` : undefined;
  const { verdict, reasons } = outcomeOf({ output: lines.join('\n'), exitCode: code, signal });
  return [name, verdict, `(${(ended - begun).toFixed(1)} s) ${reasons.join(' / ')}`];
}

async function startTarget(lab: Lab): Promise<RunningCommand> {
  const program = join(repositoryRoot, 'dist/plugins/cli/main.js');
  const options = `--name ${NAME} --memory 256M --listen ${lab.host.ipv4} --no-immediate-data`;
  const target = lab.host.spawn(`exec ${process.execPath} ${program} iser-target ${options}`);
  await target.waitForOutput(/^serving/m, START_TIMEOUT_MS);
  return target;
}

async function makeShim(lab: Lab, guest: Guest): Promise<string> {
  const library = join(runDir, 'zeroed-memory.so');
  const source = join(sourceDir, 'zeroed-memory.c');
  const built = await lab.host.run(`gcc -O2 -shared -fPIC -o ${library} ${source}`);
  assert.equal(built.code, 0, built.stderr);
  return guest.put(library);
}
