// iscsi-test-cu of libiscsi over iSER in a guest, our target on the host: one process a test.
import assert from 'node:assert/strict';
import { join } from 'node:path';

import { explanation, FAILURES, NOT_OVER_ISER, SKIPS } from '../../iscsi/explained.js';
import { type Outcome, outcomeOf } from '../../iscsi/outcome.js';
import { listTests } from '../../iscsi/suite.js';
import type { Lab } from '../lab.js';
import { repositoryRoot, sourceDir } from '../paths.js';
import { runDir } from '../sandbox.js';
import type { Case } from '../suite.js';

const NAME = 'iqn.2026-01.io.dapl:suite';
const START_TIMEOUT_MS = 60_000;
const TEST_TIMEOUT_S = 60;
/**
 * What the client says when an answer took more than a second, and it has given up. On a busy
 * machine that is the machine's doing: such a test is run again, so many times in all.
 */
const LATE = /revents is not POLLIN/;
const MOST_RUNS = 3;
/** Cases of the suite, so that each is as long as others. */
const PARTS = 8;
/** Of all 230, as many in each part. */
const MIN_PASSED_OR_SKIPPED = 195;
const MAX_SKIPPED = 60;

export function iserSuiteCases(lab: Lab, version: string): Case[] {
  return Array.from({ length: PARTS }, (_, part) => ({
    name: `iser: iscsi-test-cu, part ${part + 1} of ${PARTS}`,
    row: {
      counterpart: 'libiscsi, iscsi-test-cu',
      version: `libiscsi 1.19.0, ${version.replace(/^.*, /, '')}`,
      role: `target: the tests of SCSI, part ${part + 1} of ${PARTS}`,
      transport: 'iSER over rdma_cm, RC, IPv4',
      mtuBytes: 4096,
    },
    full: true,
    isLong: true,
    timeoutMs: 900_000,
    run: () => runPart(lab, part),
  }));
}

async function runPart(lab: Lab, part: number): Promise<void> {
  const all = await listTests();
  const names = all.filter((_, i) => i % PARTS === part);
  const shim = await zeroedMemory(lab);
  const outcomes = new Map<string, Outcome>();
  for (const name of names) {
    if (explanation(NOT_OVER_ISER, name) === undefined) {
      const outcome = await runPatiently(lab, name, shim);
      console.log(`    ${outcome.verdict} ${name} ${outcome.reasons.join(' / ')}`.trimEnd());
      outcomes.set(name, outcome);
    }
  }
  const of = (verdict: string): string[] =>
    [...outcomes].filter(([, each]) => each.verdict === verdict).map(([name]) => name);
  const [passed, skipped, failed] = [of('passed'), of('skipped'), of('failed')];
  const counts = `${passed.length} passed, ${skipped.length} skipped, ${failed.length} failed`;
  console.log(`    executed ${outcomes.size} of ${names.length}: ${counts}`);
  const unexplained = failed.filter((name) => explanation(FAILURES, name) === undefined);
  assert.deepEqual(
    unexplained.map((name) => [name, outcomes.get(name)?.reasons]),
    [],
  );
  const unknown = skipped.filter((name) => explanation(SKIPS, name) === undefined);
  assert.deepEqual(unknown, [], 'skipped, and not known why');
  assert.ok(passed.length + skipped.length >= Math.floor(MIN_PASSED_OR_SKIPPED / PARTS), counts);
  assert.ok(skipped.length <= Math.ceil(MAX_SKIPPED / PARTS), counts);
}

async function runPatiently(lab: Lab, name: string, shim: string): Promise<Outcome> {
  for (let run = 1; ; run++) {
    const { outcome, isLate } = await runTest(lab, name, shim);
    if (outcome.verdict !== 'failed' || !isLate || run === MOST_RUNS) return outcome;
  }
}

interface TestRun {
  readonly outcome: Outcome;
  readonly isLate: boolean;
}

/** A target of its own, so that none finds what another left. */
async function runTest(lab: Lab, name: string, shim: string): Promise<TestRun> {
  const program = join(repositoryRoot, 'dist/plugins/cli/main.js');
  // libiscsi declares data that it does not send along, unless it is told to send none; some tests
  // want a disk of more blocks than one WRITE SAME takes.
  const how = `--memory 256M --listen ${lab.host.ipv4} --no-immediate-data`;
  const target = lab.host.spawn(
    `exec ${process.execPath} ${program} iser-target --name ${NAME} ${how}`,
  );
  await target.waitForOutput(/^serving/m, START_TIMEOUT_MS);
  try {
    const paths = name.startsWith('MultipathIO.') ? 2 : 1;
    const urls = new Array<string>(paths).fill(`iser://${lab.host.ipv4}:3260/${NAME}/0`);
    const { code, stdout, stderr } = await lab
      .guest(0)
      .run(
        `timeout -s KILL ${TEST_TIMEOUT_S} env LD_PRELOAD=${shim} ` +
          `iscsi-test-cu -d -n -V -t ALL.${name} ${urls.join(' ')} 2>&1`,
        { timeoutMs: 2000 * TEST_TIMEOUT_S },
      );
    const output = stdout + stderr;
    const outcome = outcomeOf({ output, exitCode: code ?? undefined, signal: undefined });
    return { outcome, isLate: LATE.test(output) };
  } finally {
    target.kill('SIGKILL');
    await target.exited;
  }
}

async function zeroedMemory(lab: Lab): Promise<string> {
  const library = join(runDir, 'zeroed-memory.so');
  const source = join(sourceDir, 'zeroed-memory.c');
  const built = await lab.host.run(`gcc -O2 -shared -fPIC -fno-builtin -o ${library} ${source}`);
  assert.equal(built.code, 0, built.stderr);
  return lab.guest(0).put(library);
}
