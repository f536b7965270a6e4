/**
 * rping in TypeScript: the ping-pong of librdmacm's rping over the DAT API. Either end may be the C
 * program: `rping -c -a 10.0.0.1 -v` against `node dist/samples/rping/main.js -s -a 10.0.0.1 -v`.
 */
import { DatError, type Ia, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';

import { sourceAddressTowards } from '../source-address.js';
import { runClient } from './client.js';
import { type Options, parseOptions } from './options.js';
import { runServer } from './server.js';

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

const options = parseOptions(process.argv);
let ia: Ia | undefined;
let interruptedWith: number | undefined;

for (const [signal, exitCode] of Object.entries(EXIT_CODES)) {
  process.on(signal, () => {
    interruptedWith ??= exitCode;
    void ia?.close('abrupt');
  });
}

try {
  ia = await openIa(softroce({ addresses: [await ownAddress(options)] }));
  await (options.role === 'server' ? runServer : runClient)(ia, options);
} catch (error) {
  const why = interruptedWith === undefined ? sentenceOf(error) : 'interrupted';
  process.stderr.write(`rping: ${why}\n`);
  process.exitCode = interruptedWith ?? 1;
} finally {
  await ia?.close('abrupt');
}

async function ownAddress({ role, address, source }: Options): Promise<string> {
  if (role === 'server') return address;
  return source ?? (await sourceAddressTowards(address));
}

/** What people need of an error: not the call and not the code. */
function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (!DatError.isDatError(error)) return error.message;
  return error.message.replace(`${error.operation}: `, '').replace(/ \[[A-Z_]+\]$/, '');
}
