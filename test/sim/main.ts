/** `npm run sim`: one run of the simulator, or several with seeds that follow. */
import '../support/asserting.js';
import { Command, InvalidArgumentError } from 'commander';
import { CycleSimulation } from './cycle-simulation.js';
import { DatSimulation } from './dat-simulation.js';
import { PLANTS } from './plants.js';
import { commandOf, defaultOptions, type SimOptions } from './options.js';
import { Simulation } from './simulation.js';

function number(text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0) throw new InvalidArgumentError('a number from 0 on');
  return value;
}

const program = new Command('sim')
  .description('Runs the software HCA on a simulated fabric and checks everything it does.')
  .option('--seed <number>', 'decides all that happens (default: a fresh one)', number)
  .option('--seeds <count>', 'how many runs, with seeds that follow', number, 1)
  .option('--ops <count>', 'send requests to post', number, defaultOptions.ops)
  .option('--steps <count>', 'steps of virtual time at most', number, defaultOptions.steps)
  .option('--nodes <count>', 'HCAs (default: 2 to 4, by the seed)', number, 0)
  .option('--loss <percent>', 'fixed rate, in place of changing faults', number)
  .option('--duplicate <percent>', 'likewise', number)
  .option('--reorder <percent>', 'likewise', number)
  .option('--corrupt <percent>', 'likewise', number)
  .option('--dat', 'through the whole DAT API, in place of the verbs', false)
  .option('--cycles <count>', 'connections made, used and ended, while MADs get lost', number)
  .option('--ports', 'faults of ports besides: refusals, small MTUs, forged ICMP', false)
  .option('--quiet', 'no faults', false)
  .option('--plant <name>', `a deliberate bug: ${Object.keys(PLANTS).join(', ')}`)
  .option('--verbose', 'a line for each event, and what was seen how often', false)
  .parse();

interface Arguments extends Omit<SimOptions, 'log'> {
  readonly seeds: number;
  readonly verbose: boolean;
  readonly cycles?: number;
}

async function runOne(options: SimOptions, verbose: boolean): Promise<boolean> {
  const simulation = options.dat ? new DatSimulation(options) : new Simulation(options);
  try {
    const report = await simulation.run();
    const rate = Math.round((report.packets / report.wallMs) * 1000);
    console.log(
      `seed ${options.seed}: ok, hash ${report.hash}, ${report.ops} requests, ` +
        `${report.connections} connections, ${report.packets} packets, ${report.steps} steps, ` +
        `${(report.virtualUs / 1e6).toFixed(3)} s in ${(report.wallMs / 1000).toFixed(2)} s ` +
        `(${rate} packets/s)`,
    );
    if (verbose) {
      console.log(report.fabric);
      for (const [name, count] of report.marks) if (count > 0) console.log(`${count} ${name}`);
    }
    return true;
  } catch (error) {
    for (const line of simulation.trace.lines) console.error(line);
    const text = error instanceof Error && error.name !== 'Violation' ? error.stack : String(error);
    console.error(`seed ${options.seed}: ${text ?? ''}\nRepeat with: ${commandOf(options)}`);
    return false;
  }
}

/** Endurance: the report says how much memory is held. */
async function runCycles(seed: number, cycles: number): Promise<boolean> {
  const simulation = new CycleSimulation({ seed, cycles });
  try {
    const report = await simulation.run();
    const { mads, established, transfers, heldEarlyBytes, heldLateBytes } = report;
    console.log(
      `seed ${seed}: ok, hash ${report.hash}, ${report.cycles} cycles, ` +
        `${established} established, ` +
        `${transfers} RMPP transfers, ${report.packets} packets, MADs ${JSON.stringify(mads)}, ` +
        `${(report.virtualUs / 1e6).toFixed(3)} s in ${(report.wallMs / 1000).toFixed(2)} s, ` +
        `held after a tenth ${heldEarlyBytes} bytes, after all ${heldLateBytes} bytes`,
    );
    return true;
  } catch (error) {
    for (const line of simulation.trace.lines) console.error(line);
    const repeat = `npm run sim -- --seed ${seed} --cycles ${cycles}`;
    console.error(`seed ${seed}: ${String(error)}\nRepeat with: ${repeat}`);
    return false;
  }
}

const { seeds, verbose, cycles, ...given } = program.opts<Arguments>();
const first = (given.seed as number | undefined) ?? Math.floor(Date.now() % 2 ** 32);
let failures = 0;
for (let seed = first; seed < first + seeds; seed++) {
  const log = verbose ? { log: (line: string) => console.log(line) } : {};
  const ok =
    cycles === undefined
      ? await runOne({ ...given, seed, ...log }, verbose)
      : await runCycles(seed, cycles);
  if (!ok) failures++;
}
process.exitCode = failures > 0 ? 1 : 0;
