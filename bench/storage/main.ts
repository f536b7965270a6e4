/**
 * A disk over iSER beside the same disk over iSCSI/TCP, by the same code: our initiator in this
 * process, our target in another one, blocks in its memory, softroce on loopback.
 *
 *   npm run bench:storage -- [--rounds N] [--seconds S] [--only TEXT] [--shm] [--peer URL]
 *     [--json FILE]
 *
 * A round measures each cell with all contenders, one right after the other; ratios are of the same
 * round. `--shm` lets softroce have its packets in memory that both processes share, as it does by
 * default on one machine; without it they are UDP datagrams, as between machines.
 * `--peer [NAME=]iser://ADDRESS[:PORT]/TARGET` (or `tcp://`) adds a target that is there already,
 * as LIO in the guest; again for more. `--no-own` leaves ours out.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Command, InvalidArgumentError } from 'commander';
import { positive } from '../compare/arguments.js';
import { openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { type Disk, ISCSI_PORT, openDisk } from '../../samples/ulp/iser/index.js';
import { pin } from '../compare/pinned.js';
import { buffersOf, type Cell, CELLS, type Contender, run, type Sample } from './cells.js';
import { type Row, table } from './report.js';

const DISK_BYTES = 64 << 20;
/** Runs before the first round: code is compiled by then. */
const WARM_UP_SECONDS = 0.5;

interface Given {
  readonly rounds: number;
  readonly seconds: number;
  readonly only: string;
  readonly network: string;
  readonly local?: string;
  readonly peer: readonly Contender[];
  readonly own: boolean;
  readonly shm: boolean;
  readonly json?: string;
}

function peer(text: string, before: readonly Contender[]): readonly Contender[] {
  const match = /^(?:([^=:/]+)=)?(iser|tcp):\/\/([^/:]+)(?::(\d+))?\/(.+)$/.exec(text);
  if (match === null) {
    throw new InvalidArgumentError('[NAME=]iser://ADDRESS[:PORT]/TARGET, or tcp://');
  }
  const [, given, transport = '', address = '', port = String(ISCSI_PORT), target = ''] = match;
  const name = given ?? `peer ${before.length + 1}, ${transport}`;
  const contender = { name, transport: transport as 'iser' | 'tcp', address, target };
  return [...before, { ...contender, port: Number(port) }];
}

/** Ours: the process, and both ways to it. */
async function startOwn(address: string, shm: boolean): Promise<[ChildProcess, Contender[]]> {
  const worker = fileURLToPath(new URL('worker.js', import.meta.url));
  const child = fork(worker, [address, String(DISK_BYTES), shm ? 'shm' : 'udp']);
  const [message] = (await once(child, 'message')) as [{ target: string; tcpPort: number }];
  const { target, tcpPort } = message;
  return [
    child,
    [
      { name: 'iSER', transport: 'iser', address, port: ISCSI_PORT, target },
      { name: 'TCP', transport: 'tcp', address, port: tcpPort, target },
    ],
  ];
}

async function measure(given: Given): Promise<void> {
  const { rounds, seconds, only, network, own, shm, json, local = `${network}.1` } = given;
  const [child, ours] = own ? await startOwn(`${network}.2`, shm) : [undefined, []];
  pin(process.pid, 0);
  pin(child?.pid, 1);
  const ia = await openIa(softroce({ addresses: [local], shm }));
  const contenders = [...ours, ...given.peer];
  const disks = new Map<Contender, Disk>();
  for (const contender of contenders) {
    const { address, port, transport, target } = contender;
    disks.set(
      contender,
      await openDisk({ address, port, transport, target, ia, reconnect: NEVER }),
    );
  }
  const cells = CELLS.filter((cell) => nameOf(cell).includes(only));
  const rows: Row[] = cells.map((cell) => ({ cell, samples: new Map<string, Sample[]>() }));
  for (const { cell, samples } of rows) {
    const buffers = new Map(
      contenders.map((contender) => [contender, buffersOf(disks.get(contender)!, cell)]),
    );
    for (let round = -1; round < rounds; round++) {
      // Each goes first as often as the others.
      for (let turn = 0; turn < contenders.length; turn++) {
        const contender = contenders[(turn + round + 1) % contenders.length]!;
        const time = round < 0 ? WARM_UP_SECONDS : seconds;
        const sample = await run(disks.get(contender)!, cell, buffers.get(contender)!, time);
        if (round < 0) continue;
        const of = samples as Map<string, Sample[]>;
        of.set(contender.name, [...(of.get(contender.name) ?? []), sample]);
      }
    }
    process.stderr.write(`${nameOf(cell)}\n`);
  }
  process.stdout.write(`${table(rows, contenders)}\n`);
  if (json !== undefined) {
    const plain = rows.map(({ cell, samples }) => ({ cell, samples: Object.fromEntries(samples) }));
    await writeFile(json, `${JSON.stringify(plain, undefined, 2)}\n`);
  }
  for (const disk of disks.values()) await disk.close();
  await ia.close();
  child?.disconnect();
}

const NEVER = { firstMs: 0, mostMs: 0, attempts: 0 } as const;

function nameOf({ operation, bytes, depth }: Cell): string {
  return `${operation} ${bytes / 1024} KiB depth ${depth}`;
}

const none: readonly Contender[] = [];
await new Command('bench:storage')
  .option('--rounds <n>', 'rounds of each cell', positive, 5)
  .option('--seconds <s>', 'time of each contender in a round', positive, 1)
  .option('--only <text>', 'cells with this in their name: "read 4 KiB"', '')
  .option('--network <a.b.c>', 'loopback addresses of both sides', '127.0.88')
  .option('--local <address>', 'own address towards --peer')
  .option('--peer <url>', 'a target that is there already', peer, none)
  .option('--shm', 'packets in shared memory', false)
  .option('--no-own', 'without our target')
  .option('--json <file>', 'all samples')
  .action(measure)
  .parseAsync();
