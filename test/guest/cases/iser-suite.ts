// iscsi-test-cu of libiscsi over iSER in a guest, our target on the host: one process a test.
import assert from 'node:assert/strict';
import { join } from 'node:path';

import { explanation, FAILURES_OVER_ISER, NOT_OVER_ISER, SKIPS } from '../../iscsi/explained.js';
import { type Outcome, outcomeOf, type Verdict } from '../../iscsi/outcome.js';
import { listTests, needsOf } from '../../iscsi/suite.js';
import { patience } from '../../support/patience.js';
import type { Lab } from '../lab.js';
import { repositoryRoot, sourceDir } from '../paths.js';
import { runDir } from '../sandbox.js';
import type { Case } from '../suite.js';

const NAME = 'iqn.2026-01.io.dapl:suite';
const START_TIMEOUT_MS = 60_000;
const TEST_TIMEOUT_MS = 30_000;
/** Cases of the suite, so that each is as long as others. */
const PARTS = 8;
/** Of all parts; in one of them each failure is one that is known. */
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

/** Of all parts that this run has had, by test. */
const ofAllParts = new Map<string, Outcome>();

/** Prints what came of tests. @returns their numbers, by verdict */
function summary(what: string, outcomes: ReadonlyMap<string, Outcome>): Record<Verdict, number> {
  const of = { passed: 0, skipped: 0, failed: 0 };
  for (const { verdict } of outcomes.values()) of[verdict]++;
  const { passed, skipped, failed } = of;
  const counts = `${passed} passed, ${skipped} skipped, ${failed} failed`;
  console.log(`    executed ${outcomes.size} of ${what}: ${counts}`);
  return of;
}

async function runPart(lab: Lab, part: number): Promise<void> {
  const tests = await listTests();
  const names = tests.filter((_, i) => i % PARTS === part);
  const preloaded = await preload(lab);
  const outcomes = new Map<string, Outcome>();
  for (const name of names) {
    if (explanation(NOT_OVER_ISER, name) === undefined) {
      const outcome = await runTest(lab, name, preloaded);
      console.log(`    ${outcome.verdict} ${name} ${outcome.reasons.join(' / ')}`.trimEnd());
      outcomes.set(name, outcome);
    }
  }
  for (const [name, outcome] of outcomes) ofAllParts.set(name, outcome);
  const { skipped } = summary(`${names.length}, part ${part + 1}`, outcomes);
  const all = summary(`${tests.length} in this run so far`, ofAllParts);
  const of = (verdict: Verdict): string[] =>
    [...outcomes].filter(([, each]) => each.verdict === verdict).map(([name]) => name);
  const unexplained = of('failed').filter(
    (name) => explanation(FAILURES_OVER_ISER, name) === undefined,
  );
  assert.deepEqual(
    unexplained.map((name) => [name, outcomes.get(name)?.reasons]),
    [],
  );
  const unknown = of('skipped').filter((name) => explanation(SKIPS, name) === undefined);
  assert.deepEqual(unknown, [], 'skipped, and not known why');
  assert.ok(skipped <= Math.ceil(MAX_SKIPPED / PARTS), 'more are skipped than may be');
  const able = tests.filter((name) => explanation(NOT_OVER_ISER, name) === undefined);
  if (ofAllParts.size < able.length) return;
  const counts = `${all.passed} passed, ${all.skipped} skipped, ${all.failed} failed`;
  console.log(`    all parts: ${counts} of the ${able.length} that the client can do over iSER`);
  assert.ok(all.passed + all.skipped >= MIN_PASSED_OR_SKIPPED, 'fewer of all than it may be');
  assert.ok(all.skipped <= MAX_SKIPPED, 'more of all are skipped than may be');
}

/** A target of its own, so that none finds what another left. */
async function runTest(lab: Lab, name: string, preloaded: string): Promise<Outcome> {
  const program = join(repositoryRoot, 'dist/plugins/cli/main.js');
  // libiscsi declares data that it does not send along, unless it is told to send none; some tests
  // want a disk of more blocks than one WRITE SAME takes.
  const { paths = 1, blockBytes = 512, isReadOnly = false } = needsOf(name);
  const how =
    `--memory 256M --listen ${lab.host.ipv4} --no-immediate-data --block-bytes ${blockBytes}` +
    (isReadOnly ? ' --read-only' : '');
  const target = lab.host.spawn(
    `exec ${process.execPath} ${program} iser-target --name ${NAME} ${how}`,
  );
  await target.waitForOutput(/^serving/m, START_TIMEOUT_MS);
  try {
    const urls = new Array<string>(paths).fill(`iser://${lab.host.ipv4}:3260/${NAME}/0`);
    const seconds = Math.ceil(patience(TEST_TIMEOUT_MS) / 1000);
    const { code, stdout } = await lab.guest(0).run(
      `timeout -s KILL ${seconds} env LD_PRELOAD=${preloaded} ` +
        // By lines: what is killed has told of all that it did.
        `stdbuf -oL iscsi-test-cu -d -n -V -t ALL.${name} ${urls.join(' ')} 2>&1`,
      { timeoutMs: 2 * TEST_TIMEOUT_MS },
    );
    return outcomeOf({ output: stdout, exitCode: code ?? undefined, signal: undefined });
  } finally {
    target.kill('SIGKILL');
    await target.exited;
  }
}

async function preload(lab: Lab): Promise<string> {
  const library = join(runDir, 'libiscsi-preload.so');
  const source = join(sourceDir, 'libiscsi-preload.c');
  const built = await lab.host.run(`gcc -O2 -shared -fPIC -fno-builtin -o ${library} ${source}`);
  assert.equal(built.code, 0, built.stderr);
  return lab.guest(0).put(library);
}
