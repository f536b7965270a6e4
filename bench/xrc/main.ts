/**
 * SEND into a receive queue of an XRC domain that processes share, whose host process places the
 * bytes, beside a domain of the receiver's own process and plain RC with a shared receive queue.
 *
 *   npm run bench:xrc -- [--rounds N] [--seconds S] [--network A.B.C]
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { median } from '../compare/statistics.js';
import { type Call, type Kind, KINDS } from './calls.js';

const WORKER = join(import.meta.dirname, 'worker.js');
const NAMES: Readonly<Record<Kind, string>> = {
  hosted: 'XRC, domain of several processes',
  own: 'XRC, domain of the process',
  rc: 'RC with an SRQ',
};
const FIGURES = ['16 B, post to event, us', '8 B, 16 in flight, k/s', '64 KiB, 16 in flight, GB/s'];

interface Pair {
  readonly receiver: ChildProcess;
  readonly sender: ChildProcess;
}

async function ask(process: ChildProcess, call: Call): Promise<number> {
  process.send(call);
  const [{ value, error }] = (await once(process, 'message')) as [
    { readonly value?: number; readonly error?: string },
  ];
  if (value === undefined) throw new Error(`${call.call}: ${error}`);
  return value;
}

async function pairOf(kind: Kind, addresses: readonly string[], file: string): Promise<Pair> {
  const [to = '', from = ''] = addresses;
  const receiver = fork(WORKER, [kind, to, file]);
  const sender = fork(WORKER, [kind, from, file]);
  const srqn = await ask(receiver, { call: 'receive' });
  await ask(sender, { call: 'connect', to, srqn });
  return { receiver, sender };
}

/** The figures of FIGURES. */
async function measure({ receiver, sender }: Pair, seconds: number): Promise<number[]> {
  const rate = async (bytes: number): Promise<number> => {
    await ask(receiver, { call: 'received' });
    const took = await ask(sender, { call: 'flood', bytes, seconds });
    return (await ask(receiver, { call: 'received' })) / took;
  };
  await ask(sender, { call: 'ping', seconds });
  const delayUs = await ask(receiver, { call: 'delayUs' });
  return [delayUs, (await rate(8)) / 1e3, ((await rate(65_536)) * 65_536) / 1e9];
}

interface Options {
  readonly rounds: number;
  readonly seconds: number;
  readonly network: string;
}

const { rounds, seconds, network } = new Command('bench:xrc')
  .description('SEND into a hosted XRC receive queue, beside others')
  .option('--rounds <n>', 'of all, one after the other', Number, 9)
  .option('--seconds <s>', 'of each measurement', Number, 0.5)
  .option('--network <a.b.c>', 'first three numbers of the addresses', '127.0.18')
  .parse()
  .opts<Options>();

const directory = mkdtempSync(join(tmpdir(), 'dapl-bench-xrc-'));
const file = join(directory, 'domain');
writeFileSync(file, '');
const pairs: Pair[] = [];
try {
  for (const [i, kind] of KINDS.entries()) {
    pairs.push(await pairOf(kind, [`${network}.${2 * i + 1}`, `${network}.${2 * i + 2}`], file));
  }
  const found: number[][][] = KINDS.map(() => []);
  for (let round = 0; round <= rounds; round++) {
    for (const [i, pair] of pairs.entries()) {
      const figures = await measure(pair, seconds);
      // The first round warms up.
      if (round > 0) found[i]!.push(figures);
    }
  }
  console.log(
    `| ${['', ...KINDS.map((kind) => NAMES[kind])].join(' | ')} | hosted / own | hosted / RC |`,
  );
  console.log(`|${' --- |'.repeat(KINDS.length + 3)}`);
  for (const [figure, name] of FIGURES.entries()) {
    const of = (kind: number): number[] => found[kind]!.map((figures) => figures[figure]!);
    const ratio = (other: number): string =>
      median(of(0).map((value, round) => value / of(other)[round]!)).toPrecision(3);
    const values = KINDS.map((_, kind) => median(of(kind)).toPrecision(3));
    console.log(`| ${[name, ...values, ratio(1), ratio(2)].join(' | ')} |`);
  }
} finally {
  for (const { receiver, sender } of pairs) {
    receiver.kill();
    sender.kill();
  }
  rmSync(directory, { recursive: true });
}
