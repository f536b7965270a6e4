/** `npm run soak:kill`: processes with connections are killed and stopped, by seed. */
import '../support/asserting.js';
import { Command } from 'commander';
import { killCases, KillSoak } from './kill-soak.js';
import { networkOf } from '../support/loopback.js';

const program = new Command('soak:kill')
  .description('Kills and stops processes with connections open, and watches their peers.')
  .option('--seed <number>', 'decides what happens when', Number, Date.now() % 1_000_000)
  .option('--count <number>', 'processes to kill', Number, 200)
  .option('--abreast <number>', 'so many at a time', Number, 3)
  .option('--verbose', 'a line for each', false)
  .parse();

interface Arguments {
  readonly seed: number;
  readonly count: number;
  readonly abreast: number;
  readonly verbose: boolean;
}

const { seed, count, abreast, verbose } = program.opts<Arguments>();
const log = verbose ? (line: string): void => console.log(line) : undefined;
const startMs = performance.now();
const report = await new KillSoak(killCases(seed, count), networkOf(45), log).run(abreast);
const { failures, ...rest } = report;
console.log(`seed ${seed}, ${Math.round((performance.now() - startMs) / 1000)} s:`, rest);
for (const failure of failures) console.error(failure);
if (failures.length > 0) process.exitCode = 1;
