/** `npm run adversary`: one run, or several with seeds that follow. */
import '../support/asserting.js';
import { Command, InvalidArgumentError } from 'commander';
import { type AdversaryOptions, AdversaryRun, commandOf } from './adversary-run.js';
import { ADVERSARY_PLANTS } from './plants.js';

function number(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0) throw new InvalidArgumentError('an integer from 0 on');
  return value;
}

const program = new Command('adversary')
  .description('Runs work of every kind past an adversary that forges packets with a right ICRC.')
  .option('--seed <number>', 'decides all that happens (default: a fresh one)', number)
  .option('--seeds <count>', 'how many runs, with seeds that follow', number, 1)
  .option('--packets <count>', 'packets to forge', number, 1_000_000)
  .option('--plant <name>', `a deliberate bug: ${Object.keys(ADVERSARY_PLANTS).join(', ')}`)
  .option('--verbose', 'a line for each event, and what was done how often', false)
  .parse();

interface Arguments extends Omit<AdversaryOptions, 'seed' | 'log'> {
  readonly seed?: number;
  readonly seeds: number;
  readonly verbose: boolean;
}

async function runOne(options: AdversaryOptions, verbose: boolean): Promise<boolean> {
  const run = new AdversaryRun(options);
  try {
    const report = await run.run();
    const seconds = (report.wallMs / 1000).toFixed(1);
    console.log(
      `seed ${options.seed}: ok, hash ${report.hash}, ${report.forged} forged of ${report.sent} ` +
        `packets, ${(report.virtualUs / 1e6).toFixed(3)} s in ${seconds} s`,
    );
    if (verbose) for (const [name, count] of report.marks) console.log(`${count} ${name}`);
    return true;
  } catch (error) {
    for (const line of run.trace.lines) console.error(line);
    const text = error instanceof Error && error.name !== 'Violation' ? error.stack : String(error);
    console.error(`seed ${options.seed}: ${text ?? ''}\nRepeat with: ${commandOf(options)}`);
    return false;
  }
}

const { seeds, seed: given, verbose, ...options } = program.opts<Arguments>();
const first = given ?? Math.floor(Date.now() % 2 ** 32);
const log = verbose ? { log: (line: string) => console.log(line) } : {};
let failures = 0;
for (let seed = first; seed < first + seeds; seed++) {
  if (!(await runOne({ ...options, seed, ...log }, verbose))) failures++;
}
process.exitCode = failures > 0 ? 1 : 0;
