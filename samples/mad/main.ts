/**
 * Management datagrams of an application's own between two processes: one answers, one asks. The
 * answer may be longer than a datagram: RMPP carries it in segments.
 */
import { Argument, Command, InvalidArgumentError } from 'commander';
import { DatError, type Ia, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';

import { sourceAddressTowards } from '../source-address.js';
import { MAX_TEXT_BYTES } from './protocol.js';
import { query } from './query.js';
import { serve } from './serve.js';

let ia: Ia | undefined;
for (const [signal, exitCode] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  process.once(signal, () => {
    process.exitCode = exitCode;
    void ia?.close('abrupt');
  });
}

const program = new Command('mad').description('asks machines about themselves, by MADs');

program
  .command('serve')
  .requiredOption('--listen <ip>', 'the own address')
  .action(async ({ listen }: { listen: string }) => {
    ia = await openIa(softroce({ addresses: [listen] }));
    await serve(ia);
  });

program
  .command('query')
  .addArgument(
    new Argument('[what]', 'to ask for').choices(['summary', 'listing', 'text']).default('summary'),
  )
  .requiredOption('--to <ip>', 'the address of the machine')
  .option('--from <ip>', 'the own address (default: the one that leads there)')
  .option('--path <path>', 'of a listing', '/')
  .option('--bytes <count>', 'of a text', integer(0, MAX_TEXT_BYTES), 1000)
  .option('--timeout <ms>', 'for the answer', integer(1, 3_600_000), 1000)
  .action(async (what: 'summary' | 'listing' | 'text', given: QueryOptions) => {
    const { to, from, path, bytes, timeout } = given;
    ia = await openIa(softroce({ addresses: [from ?? (await sourceAddressTowards(to))] }));
    console.log(await query(ia, { address: to, what, path, bytes, timeoutMs: timeout }));
  });

interface QueryOptions {
  readonly to: string;
  readonly from?: string;
  readonly path: string;
  readonly bytes: number;
  readonly timeout: number;
}

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode ??= 1;
  process.stderr.write(`mad: ${sentenceOf(error)}\n`);
} finally {
  await ia?.close('abrupt');
}

function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`an integer from ${min} to ${max}`);
  };
}

/** What people need of an error: not the call and not the code. */
function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (!DatError.isDatError(error)) return error.message;
  if (error.code === 'DAT_TIMEOUT_EXPIRED') return 'no answer';
  return error.message.replace(`${error.operation}: `, '').replace(/ \[[A-Z_0-9]+\]$/, '');
}
