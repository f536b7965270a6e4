/**
 * An array of numbers that two processes share, and a third one writes over RDMA. `serve` and
 * `watch` map the same registered memory, so a write of the third appears in both at once.
 */
import { Command } from 'commander';
import { integer } from '../command-options.js';
import { runProgram } from '../program.js';
import { serve, watch, write } from './roles.js';

interface Options {
  readonly address: string;
  readonly name: string;
  readonly mib: number;
  readonly port: number;
  readonly rounds: number;
  readonly to: string;
}

await runProgram('shared-array', async (open) => {
  const program = new Command('shared-array').description('an array that processes share');
  const command = (name: string, what: string): Command =>
    program
      .command(name)
      .description(what)
      .requiredOption('-a, --address <ip>', 'local address; each process needs its own')
      .option('--name <name>', 'name of the memory', 'shared-array')
      .option('--mib <n>', 'mebibytes of numbers, the same for all three', integer(1, 4095), 1024)
      .option('--port <n>', 'port of the connection', integer(1, 65535), 7476)
      .option('--rounds <n>', 'number of rounds', integer(1, 1000), 3);

  command('serve', 'share the array, and open it to a writer').action(
    async ({ address, port, rounds, ...place }: Options) =>
      serve(await open(address), place, port, rounds),
  );
  command('watch', 'shares the array, and adds it up after each round').action(
    async ({ address, rounds, ...place }: Options) => watch(await open(address), place, rounds),
  );
  command('write', 'writes the array by RDMA')
    .requiredOption('--to <ip>', 'address of the serving process')
    .action(async ({ address, to, port, rounds, ...place }: Options) =>
      write(await open(address), place, to, port, rounds),
    );
  await program.parseAsync();
});
