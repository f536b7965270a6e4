// iscsi-test-cu of libiscsi over iSER in a guest, our target on the host: one process a test.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

import { explanation, FAILURES, NOT_OVER_ISER, SKIPS } from '../../iscsi/explained.js';
import { type Outcome, outcomeOf } from '../../iscsi/outcome.js';
import { listTests } from '../../iscsi/suite.js';
import type { Lab } from '../lab.js';
import { repositoryRoot } from '../paths.js';
import { runDir } from '../sandbox.js';
import type { Case } from '../suite.js';

const NAME = 'iqn.2026-01.io.dapl:suite';
const START_TIMEOUT_MS = 60_000;
const TEST_TIMEOUT_S = 60;
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
  const shim = zeroedMalloc();
  const outcomes = new Map<string, Outcome>();
  for (const name of names) {
    if (explanation(NOT_OVER_ISER, name) === undefined) {
      outcomes.set(name, await runTest(lab, name, shim));
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

/** A target of its own, so that none finds what another left. */
async function runTest(lab: Lab, name: string, shim: string): Promise<Outcome> {
  const program = join(repositoryRoot, 'dist/plugins/cli/main.js');
  // libiscsi declares data that it does not send along, unless it is told to send none.
  const how = `--memory 64M --listen ${lab.host.ipv4} --no-immediate-data`;
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
    return outcomeOf({ output: stdout + stderr, exitCode: code ?? undefined, signal: undefined });
  } finally {
    target.kill('SIGKILL');
    await target.exited;
  }
}

function zeroedMalloc(): string {
  const library = join(runDir, 'zeroed-malloc.so');
  const source = join(repositoryRoot, 'test/guest/zeroed-malloc.c');
  execFileSync('gcc', ['-O1', '-shared', '-fPIC', '-fno-builtin', '-o', library, source]);
  return library;
}
