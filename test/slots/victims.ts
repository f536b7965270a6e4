/**
 * Programs of a shared address that end at a step which is decided before (deadly-addon.ts), and
 * what a seed decides: of those that come and go, and of those that stay, one of which is broker.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { SeededRandom } from '../../plugins/faults/grammar/seeded-random.js';
import { patience } from '../support/patience.js';
import { type Death, type Step, wordsOf } from './deadly-addon.js';
import { Program } from './programs.js';

const LIGHT = join(import.meta.dirname, 'light-member.js');
/** How long one that comes and goes may take to its step: it is through all within a second. */
const COMER_MS = 30_000;
/** One that stays is killed after so long as it is, where its step has not come. */
const STAYER_MS = 4_000;
const STAYER_OPEN_MS = 60_000;

/** What one that joins, listens and leaves goes through, each time. */
const OF_COMERS: readonly Step[] = [
  'connects',
  'sends HELLO',
  'takes PLACE',
  'takes SLOT',
  'locks',
  'sends GOODBYE',
];
/** What a broker does while others come and go, are called and are killed. */
const OF_BROKERS: readonly Step[] = [
  // In the beginning only: later ones get slots that have sockets already.
  'binds',
  'binds',
  'listens',
  'steers',
  'accepts',
  'takes HELLO',
  'wakes',
  'sends PLACE',
  'sends SLOT',
  'takes GOODBYE',
  'silences',
  'sends PACKET',
  'sends REFUSED',
];
/** Steps that a process which stays has, too, while it is none. */
const OF_MEMBERS: readonly Step[] = ['takes PACKET', 'takes SLOT', 'sends HELLO', 'takes PLACE'];

export const ALL_STEPS: readonly Step[] = [
  ...new Set([...OF_COMERS, ...OF_BROKERS, ...OF_MEMBERS]),
];

/** What a process does once. */
const ONCE: readonly Step[] = ['listens', 'steers', 'takes SLOT'];

function deathBySeed(random: SeededRandom, steps: readonly Step[], most: number): Death {
  const when = random.percent(50) ? 'before' : 'after';
  const step = random.percent(25) ? 'any' : steps[random.below(steps.length)]!;
  const last = step === 'any' ? 60 : ONCE.includes(step) ? 1 : most;
  return { step, nth: random.between(1, last), when };
}

export const deathOfComer = (random: SeededRandom): Death => deathBySeed(random, OF_COMERS, 2);

/** Brokers are few: their steps have their turn, so that none is left out by chance. */
export class DeathsOfStayers {
  private turn = 0;

  constructor(private readonly random: SeededRandom) {}

  next(): Death {
    const { random } = this;
    if (this.turn > 1 && random.percent(25)) return deathBySeed(random, OF_MEMBERS, 1);
    const step = OF_BROKERS[this.turn++ % OF_BROKERS.length]!;
    return deathBySeed(random, [step], 2);
  }
}

export interface Where {
  readonly shared: string;
  /** An address of its own, of programs that are not killed. */
  readonly outside: string;
  readonly udpPort: number;
}

/** What a process has said when it was killed. */
export interface Ended {
  /** `before it sends HELLO, member`; absent: it has not come to its step. */
  readonly at?: string;
  readonly failures: readonly string[];
  readonly joins: number;
}

/** Joins and leaves, over and over, until its step. */
export class Comer {
  private readonly child: ChildProcess;
  private said = '';
  private complained = '';

  constructor({ shared, udpPort }: Where, service: number, death: Death) {
    const args = [LIGHT, shared, String(udpPort), String(service), ...wordsOf(death).split(' ')];
    this.child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => (this.said += text));
    this.child.stderr!.setEncoding('utf8').on('data', (text) => (this.complained += text));
  }

  async ended(): Promise<Ended> {
    const { child } = this;
    const timer = setTimeout(() => child.kill('SIGKILL'), patience(COMER_MS));
    await once(child, 'close');
    clearTimeout(timer);
    const lines = this.said.split('\n');
    return {
      ...atOf(lines.find((line) => line.startsWith('killed '))),
      joins: lines.filter((line) => line.startsWith('joined ')).length,
      failures: [
        ...lines.filter((line) => line.startsWith('failed ')),
        ...(child.signalCode === 'SIGKILL' ? [] : [`ends by itself: ${this.complained}`]),
      ],
    };
  }
}

/** Has the device, and listens, until its step, or for some seconds. */
export class Stayer {
  private isLeading = false;

  private constructor(
    private readonly program: Program,
    readonly port: number,
    /** What it has said instead of being open: it was killed. */
    private readonly said: string | undefined,
  ) {}

  static async open({ shared, udpPort }: Where, port: number, death: Death): Promise<Stayer> {
    const program = new Program();
    for (const command of [
      `die ${wordsOf(death)}`,
      `open ${shared} ${udpPort}`,
      `listen ${port}`,
    ]) {
      const said = await program.ask(command, STAYER_OPEN_MS);
      if (!['will', 'open', 'listening'].includes(said)) return new Stayer(program, port, said);
    }
    return new Stayer(program, port, undefined);
  }

  get isOpen(): boolean {
    return this.said === undefined;
  }

  /** It is the next to be broker, or is it: its step comes within some seconds, or never. */
  lead(): void {
    if (this.isLeading) return;
    this.isLeading = true;
    const timer = setTimeout(() => this.program.signal('SIGKILL'), STAYER_MS);
    void this.program.gone.then(() => clearTimeout(timer));
  }

  kill(): void {
    this.program.signal('SIGKILL');
  }

  async ended(): Promise<Ended> {
    const { program, said } = this;
    if (said !== undefined) {
      await program.kill();
      const failures = said.startsWith('killed ') ? [] : [said];
      return { ...atOf(failures.length === 0 ? said : undefined), failures, joins: 0 };
    }
    await program.gone;
    await program.kill();
    const last = await program.lastWords();
    return { ...atOf(last.startsWith('killed ') ? last : undefined), failures: [], joins: 1 };
  }
}

function atOf(line: string | undefined): { at?: string } {
  return line === undefined ? {} : { at: line.slice('killed '.length) };
}
