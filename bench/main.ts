/**
 * softroce against Node's own TCP: throughput, latency and message rate between two processes on
 * loopback, in interleaved rounds. What counts is the ratio of one round: the machine's own speed
 * comes and goes.
 *
 *   npm run bench -- [--rounds N] [--seconds S] [--only TEXT] [--json FILE]
 */
import { writeFile } from 'node:fs/promises';
import { arch, cpus, release } from 'node:os';
import { pathToFileURL } from 'node:url';
import { Command, InvalidArgumentError } from 'commander';
import { type Cell, type Measurement, ROWS, type Row, type Transport } from './compare/cells.js';
import { Pair } from './compare/pair.js';
import { type Summary, summarize, table } from './compare/report.js';

export interface BenchOptions {
  readonly rounds: number;
  /** Of each cell of a round. */
  readonly seconds: number;
  readonly rows: readonly Row[];
  /** The first three numbers of the local addresses; default 127.0.0. */
  readonly network?: string;
  readonly onRound?: (round: number) => void;
}

/** Warms every cell up, then measures them round by round. */
export async function runBench(options: BenchOptions): Promise<Summary[]> {
  const { rounds, seconds, rows, network = '127.0.0', onRound } = options;
  const cells = new Map<string, Cell>();
  for (const { ours, peer } of rows) cells.set(ours.name, ours).set(peer.name, peer);
  const results = new Map<string, Measurement[]>();
  for (const name of cells.keys()) results.set(name, []);
  const pairs = new Map<Transport, Pair>();
  try {
    for (const { transport } of cells.values()) {
      if (!pairs.has(transport)) pairs.set(transport, await Pair.open(transport, network));
    }
    for (let round = 0; round <= rounds; round++) {
      onRound?.(round);
      for (const cell of cells.values()) {
        const time = round === 0 ? Math.min(seconds, 0.3) : seconds;
        const measurement = await pairs.get(cell.transport)!.measure(cell, time);
        if (round > 0) results.get(cell.name)!.push(measurement);
      }
    }
    await Promise.all([...pairs.values()].map((pair) => pair.close()));
  } finally {
    for (const pair of pairs.values()) pair.kill();
  }
  return rows.map((row) =>
    summarize(row, results.get(row.ours.name)!, results.get(row.peer.name)!),
  );
}

function positive(text: string): number {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('a positive number is due.');
}

interface Arguments {
  readonly rounds: number;
  readonly seconds: number;
  readonly only?: string;
  readonly json?: string;
}

async function main(): Promise<void> {
  const program = new Command('bench')
    .description("softroce against Node's TCP, between two processes on loopback")
    .option('--rounds <n>', 'interleaved rounds', positive, 5)
    .option('--seconds <s>', 'of each measurement', positive, 0.8)
    .option('--only <text>', 'rows whose name contains the text, whatever its case')
    .option('--json <file>', 'writes all measurements')
    .parse();
  const { rounds, seconds, only = '', json } = program.opts<Arguments>();
  const rows = ROWS.filter((row) => row.label.toLowerCase().includes(only.toLowerCase()));
  if (rows.length === 0) program.error(`no row is called "${only}"`);
  const onRound = (round: number): void => {
    process.stderr.write(round === 0 ? 'warm-up' : ` ${round}/${rounds}`);
  };
  const summaries = await runBench({ rounds: Math.ceil(rounds), seconds, rows, onRound });
  process.stderr.write('\n');
  process.stdout.write(`${table(summaries)}\n`);
  if (json === undefined) return;
  const machine = { cpu: cpus()[0]?.model, cpus: cpus().length, arch: arch(), kernel: release() };
  const result = { node: process.version, machine, rounds, seconds, rows: summaries };
  await writeFile(json, `${JSON.stringify(result, null, 2)}\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  try {
    await main();
  } catch (error) {
    process.stderr.write(`\nbench: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
