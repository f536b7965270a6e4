/**
 * Sockets over RDMA beside those of Node: the same program over rsockets and SDP on softroce, TCP
 * and Unix sockets, two processes each on loopback, in interleaved rounds. docs/performance.md has
 * results.
 *
 *   npm run bench:sockets -- [--rounds N] [--seconds S] [--only TEXT ...] [--json FILE]
 *                            [--markdown] [--counters]
 */
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { named, positive } from '../compare/arguments.js';
import { countersTable } from '../compare/counted.js';
import { describeRun } from '../compare/describe-run.js';
import { matrix } from '../compare/matrix.js';
import { NodeJobs } from '../compare/node-jobs.js';
import { table } from '../compare/report.js';
import { runBench } from '../compare/run.js';
import { ROWS } from './rows.js';

const WORKER = fileURLToPath(new URL('worker.js', import.meta.url));

interface Arguments {
  readonly rounds: number;
  readonly seconds: number;
  readonly only: readonly string[];
  readonly markdown?: true;
  readonly counters?: true;
  readonly json?: string;
}

const program = new Command('bench:sockets')
  .description(
    'rsockets and SDP over softroce beside sockets of Node, between two processes on loopback',
  )
  .option('--rounds <n>', 'interleaved rounds', positive, 5)
  .option('--seconds <s>', 'of each measurement', positive, 0.5)
  .option('--only <text...>', 'rows whose name contains one of the texts, whatever its case', [''])
  .option('--markdown', 'prints the table as Markdown')
  .option('--counters', 'prints what the devices have counted, too')
  .option('--json <file>', 'writes all measurements')
  .parse();
const { rounds, seconds, only, markdown, counters, json } = program.opts<Arguments>();
const rows = named(ROWS, only);
if (rows.length === 0) program.error(`no row is called "${only.join('" or "')}"`);
const summaries = await runBench({
  rounds: Math.ceil(rounds),
  seconds,
  rows,
  open: (contender, local, remote) => NodeJobs.open(contender, local, remote, WORKER),
  onRound: (round) => process.stderr.write(round === 0 ? 'warm-up' : ` ${round}/${rounds}`),
});
process.stderr.write('\n');
process.stdout.write(`${markdown ? matrix(summaries) : table(summaries)}\n`);
if (counters) {
  process.stdout.write(`\n${countersTable(summaries, markdown ? 'markdown' : 'text')}\n`);
}
if (json !== undefined) {
  const result = { ...describeRun(), rounds, seconds, rows: summaries };
  await writeFile(json, `${JSON.stringify(result, null, 2)}\n`);
}
