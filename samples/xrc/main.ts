/**
 * XRC between processes: a node's receivers, one process each, are reached through one connection
 * from each sender node. Without arguments it runs all of them here.
 */
import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';

import { Command } from 'commander';

import { integer } from '../command-options.js';
import { printable } from '../printable.js';
import { runReceive } from './receive.js';
import { runSender } from './sender.js';

const SELF = fileURLToPath(import.meta.url);
/** Limit by the private data of an answer, which lists the queue numbers. */
const MAX_RECEIVERS = 48;
const PORT = 7475;

interface DemoOptions {
  readonly receivers: number;
  readonly senders: number;
  readonly messages: number;
  readonly network: string;
}

async function runDemo({ receivers, senders, messages, network }: DemoOptions): Promise<void> {
  const count = String(messages);
  const home = `${network}.1`;
  const directory = await mkdtemp(join(tmpdir(), 'dapl-xrc-'));
  const domain = join(directory, 'domain');
  const crowd = ['--receivers', String(receivers), '--senders', String(senders)];
  const programs = Array.from({ length: receivers }, (_, index) => {
    const own = ['--domain', domain, '--index', String(index), '--messages', count];
    return start('receive', '--address', home, ...crowd, ...own);
  });
  try {
    // The first receiver reports when all are ready.
    await once(programs[0]!.stdout, 'data');
    for (let n = 1; n <= senders; n++) {
      const own = `${network}.${n + 1}`;
      const args = ['--address', own, '--to', home, '--number', String(n), '--messages', count];
      programs.push(start('send', ...args));
    }
    await Promise.all(programs.map(succeeded));
    const all = receivers * senders * messages;
    console.log(`${all} messages verified, by ${receivers} receivers`);
  } finally {
    for (const child of programs) child.kill();
    await rm(directory, { recursive: true });
  }
}

async function succeeded(child: ChildProcess): Promise<void> {
  await once(child, 'close');
  if (child.exitCode !== 0) throw new Error('a program has failed');
}

function start(...args: readonly string[]): ChildProcessByStdio<null, Readable, null> {
  const child = spawn(process.execPath, [SELF, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  child.stdout.pipe(process.stdout, { end: false });
  return child;
}

const messages = ['--messages <n>', 'of each sender to each receiver', integer(1, 1e6)] as const;
const receivers = ['--receivers <n>', 'receivers', integer(1, MAX_RECEIVERS)] as const;
const senders = ['--senders <n>', 'sender nodes', integer(1, 100)] as const;
const port = ['--port <number>', 'connection qualifier', integer(1, 65_535), PORT] as const;

const program = new Command('xrc').description('many receivers behind one connection');
program
  .command('demo', { isDefault: true })
  .option(...receivers, 4)
  .option(...senders, 2)
  .option(...messages, 200)
  .option('--network <prefix>', 'first three bytes of the addresses to use', '127.0.0')
  .action(runDemo);
program
  .command('receive')
  .requiredOption('--address <ip>', 'address of all receivers')
  .requiredOption('--domain <file>', 'absolute path, the same for all receivers of a run')
  .requiredOption('--index <n>', 'number of this receiver, from 0', integer(0, MAX_RECEIVERS - 1))
  .option(...receivers, 4)
  .option(...senders, 2)
  .option(...messages, 200)
  .option(...port)
  .action(runReceive);
program
  .command('send')
  .requiredOption('--address <ip>', 'local address')
  .requiredOption('--to <ip>', 'address of the receivers')
  .option('--number <n>', 'number of this sender', integer(0, 255), 0)
  .option(...messages, 200)
  .option(...port)
  .action(runSender);

try {
  await program.parseAsync();
} catch (error) {
  const why = error instanceof Error ? error.message : String(error);
  process.stderr.write(`xrc: ${printable(why)}\n`);
  process.exitCode = 1;
}
