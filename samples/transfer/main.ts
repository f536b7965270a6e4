#!/usr/bin/env node
/**
 * `transfer`: moves a file between two processes with RDMA writes, through the DAT API over
 * softroce. Without a subcommand both sides run on this machine.
 */
import { Command, InvalidArgumentError } from 'commander';
import { demo } from './demo.js';
import { sentenceOf, TransferFailure } from './failure.js';
import { receiveFile } from './receiver.js';
import { sendFile } from './sender.js';
import { DEFAULT_PORT } from './session.js';

const interrupted = new AbortController();
process.on('SIGINT', () => interrupted.abort());
const { signal } = interrupted;
const out = process.stdout;

function port(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= 65535) return value;
  throw new InvalidArgumentError('a port is a number from 1 to 65535.');
}

const program = new Command('transfer')
  .enablePositionalOptions()
  .description('Move a file between two processes with RDMA writes over softroce.')
  .argument('[file]', 'file to send; without one, 256 MiB of random bytes')
  .option('--out <directory>', 'keep the received file here')
  .option('--port <number>', 'connection qualifier', port, DEFAULT_PORT)
  .action(async (path: string | undefined, options: { out?: string; port: number }) => {
    const code = await demo({ path, directory: options.out, port: options.port, signal, out });
    process.exitCode = code;
  });

program
  .command('receive')
  .description('take one file')
  .option('--listen <address>', 'local address', '127.0.0.1')
  .option('--port <number>', 'connection qualifier', port, DEFAULT_PORT)
  .option('--out <directory>', 'directory for the file', '.')
  .action(async (options: { listen: string; port: number; out: string }) => {
    await receiveFile({
      directory: options.out,
      listen: options.listen,
      port: options.port,
      signal,
      out,
      onListening: () => {
        out.write(`Listening on ${options.listen} port ${options.port}.\n`);
        process.send?.('listening');
        process.channel?.unref();
      },
    });
  });

program
  .command('send')
  .description('send one file')
  .argument('<file>', 'file to send')
  .option('--from <address>', 'local address', '127.0.0.2')
  .option('--to <address>', 'address of the receiver', '127.0.0.1')
  .option('--port <number>', 'connection qualifier', port, DEFAULT_PORT)
  .action(async (path: string, options: { from: string; to: string; port: number }) => {
    await sendFile({ path, ...options, signal, out });
  });

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`${sentenceOf(error)}\n`);
  process.exitCode = error instanceof TransferFailure ? error.exitCode : 1;
}
