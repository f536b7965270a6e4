/**
 * iscsi-test-cu against the target over TCP (npm run test:iscsi): prints what was executed, skipped
 * and failed, and fails for a failure that test/iscsi/explained.ts does not explain, or for counts
 * below what it says.
 */
import { Command } from 'commander';
import {
  explanation,
  FAILURES,
  MAX_SKIPPED,
  MIN_PASSED_OR_SKIPPED,
  SKIPS,
  SKIPS_AT_4096,
} from './explained.js';
import { partOfToday } from '../support/part-of-today.js';
import { listTests, missingProgram, runTest, type TestResult } from './suite.js';

interface Options {
  readonly only?: string[];
  readonly part?: string;
  readonly blockBytes: string;
  readonly jobs: string;
  readonly verbose?: boolean;
}

const options = new Command('test:iscsi')
  .option('--only <names...>', 'tests whose names begin so: Read10 ProutReserve.AccessEA')
  .option('--part <of>', 'one part of so many, another one each day, as CI runs it')
  .option('--block-bytes <bytes>', '512 or 4096', '512')
  .option('--jobs <count>', 'tests at a time', '2')
  .option('--verbose', 'what the program and the target say of tests that fail')
  .parse()
  .opts<Options>();

const skips = options.blockBytes === '4096' ? { ...SKIPS, ...SKIPS_AT_4096 } : SKIPS;

process.exitCode = await main();

async function main(): Promise<number> {
  const missing = missingProgram();
  if (missing !== undefined) {
    console.error(`SKIPPED, nothing was checked: ${missing}`);
    return process.env['CI'] ? 1 : 0;
  }
  const all = await listTests();
  const names = chosen(all);
  const results: TestResult[] = [];
  const queue = [...names];
  const worker = async (): Promise<void> => {
    for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
      const result = await runTest(name, Number(options.blockBytes));
      results.push(result);
      tell(result);
    }
  };
  await Promise.all(Array.from({ length: Number(options.jobs) }, worker));
  return summary(results, names.length === all.length);
}

/** All, those that were asked for, or today's part. */
function chosen(all: readonly string[]): readonly string[] {
  const { only, part } = options;
  if (only !== undefined) {
    return all.filter((name) => only.some((each) => name === each || name.startsWith(`${each}.`)));
  }
  if (part === undefined) return all;
  const parts = Number(part);
  const today = partOfToday(parts);
  console.log(`part ${today + 1} of ${parts}`);
  return all.filter((_, i) => i % parts === today);
}

function tell({ name, verdict, reasons, elapsedMs, output, notes }: TestResult): void {
  const explained = explanation(verdict === 'failed' ? FAILURES : skips, name);
  const why = verdict === 'passed' ? '' : `: ${explained ?? reasons.join(' / ')}`;
  console.log(`${verdict.padEnd(7)} ${name} (${(elapsedMs / 1000).toFixed(1)} s)${why}`);
  if (options.verbose === true && verdict === 'failed') {
    console.log([...output.split('\n'), ...notes].map((line) => `    ${line}`).join('\n'));
  }
}

function summary(results: readonly TestResult[], isWhole: boolean): number {
  const of = (verdict: string): TestResult[] => results.filter((each) => each.verdict === verdict);
  const failed = of('failed');
  const unexplained = failed.filter(({ name }) => explanation(FAILURES, name) === undefined);
  const skipped = of('skipped');
  const unknown = skipped.filter(({ name }) => explanation(skips, name) === undefined);
  console.log(
    `executed ${results.length}: ${of('passed').length} passed, ${skipped.length} skipped, ` +
      `${failed.length} failed`,
  );
  for (const { name, reasons } of unexplained) console.log(`FAIL ${name}: ${reasons.join(' / ')}`);
  for (const { name, reasons } of unknown) console.log(`FAIL skipped ${name}: ${reasons.join()}`);
  const good = results.length - failed.length;
  const tooFew = isWhole && good < MIN_PASSED_OR_SKIPPED;
  if (tooFew) console.log(`FAIL fewer than ${MIN_PASSED_OR_SKIPPED} passed or skipped`);
  const tooMany = isWhole && skipped.length > MAX_SKIPPED;
  if (tooMany) console.log(`FAIL more than ${MAX_SKIPPED} skipped`);
  const bad = unexplained.length + unknown.length + Number(tooFew) + Number(tooMany);
  // As .ci/run counts.
  console.log(`${of('passed').length} passed, ${bad} failed`);
  return bad > 0 || results.length === 0 ? 1 : 0;
}
