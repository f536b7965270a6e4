/**
 * udaddy in TypeScript: librdmacm's exchange of datagrams over the DAT API. Either end may be the C
 * program: `udaddy -s 10.0.0.1` against `node dist/samples/udaddy/main.js -b 10.0.0.1`.
 */
import { DatError, type Ia, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';

import { sourceAddressTowards } from '../source-address.js';
import { runClient } from './client.js';
import { parseOptions } from './options.js';
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
  const { server, bind } = options;
  ia = await openIa(softroce({ addresses: [bind ?? (await sourceAddressTowards(server ?? ''))] }));
  await (server === undefined ? runServer(ia, options) : runClient(ia, server, options));
} catch (error) {
  const why = interruptedWith === undefined ? sentenceOf(error) : 'interrupted';
  process.stderr.write(`udaddy: ${why}\n`);
  process.exitCode = interruptedWith ?? 1;
} finally {
  await ia?.close('abrupt');
}

/** What people need of an error: not the call and not the code. */
function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (!DatError.isDatError(error)) return error.message;
  return error.message.replace(`${error.operation}: `, '').replace(/ \[[A-Z_]+\]$/, '');
}
