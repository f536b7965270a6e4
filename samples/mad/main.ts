/**
 * Management datagrams of an application between two processes: one answers, one asks. The answer
 * may be longer than a datagram: RMPP carries it in segments.
 */
import { readdir } from 'node:fs/promises';

import { Argument, Command } from 'commander';
import { DatError, localAddressToward } from 'dapl';

import { integer } from '../command-options.js';
import { printableLines } from '../printable.js';
import { runProgram } from '../program.js';
import { MAX_TEXT_BYTES } from './protocol.js';
import { query } from './query.js';
import { serve } from './serve.js';

interface QueryOptions {
  readonly to: string;
  readonly from?: string;
  readonly bytes: number;
  readonly timeout: number;
}

await runProgram('mad', async (open) => {
  const program = new Command('mad').description('query machines about themselves, with MADs');

  program
    .command('serve')
    .requiredOption('--listen <ip>', 'local address')
    .option('--directory <path>', 'directory that any machine may list (default: none)')
    .action(async ({ listen, directory }: { listen: string; directory?: string }) => {
      // A mistake in the directory is reported here, not to the peers that ask.
      if (directory !== undefined) await readdir(directory);
      await serve(await open(listen), directory);
    });

  program
    .command('query')
    .addArgument(
      new Argument('[what]', 'to ask for')
        .choices(['summary', 'listing', 'text'])
        .default('summary'),
    )
    .requiredOption('--to <ip>', 'address of the machine')
    .option('--from <ip>', 'local address (default: by route)')
    .option('--bytes <count>', 'length of a text', integer(0, MAX_TEXT_BYTES), 1000)
    .option('--timeout <ms>', 'time to wait for the answer', integer(1, 3_600_000), 1000)
    .action(async (what: 'summary' | 'listing' | 'text', given: QueryOptions) => {
      const { to, from, bytes, timeout } = given;
      const ia = await open(from ?? (await localAddressToward(to)));
      const question = { address: to, what, bytes, timeoutMs: timeout };
      console.log(printableLines(await query(ia, question).catch(nameSilence)));
    });
  await program.parseAsync();
});

function nameSilence(error: unknown): never {
  if (DatError.isDatError(error) && error.code === 'DAT_TIMEOUT_EXPIRED') {
    throw new Error('no answer', { cause: error });
  }
  throw error;
}
