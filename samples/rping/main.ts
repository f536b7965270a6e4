/**
 * rping in TypeScript: the ping-pong of librdmacm's rping over the DAT API. Either end may be the C
 * program: `rping -c -a 10.0.0.1 -v` against `node dist/samples/rping/main.js -s -a 10.0.0.1 -v`.
 */
import { openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';

import { runClient } from './client.js';
import { sourceAddressTowards } from '../source-address.js';
import { parseOptions } from './options.js';
import { runServer } from './server.js';

const options = parseOptions(process.argv);
const own =
  options.role === 'server'
    ? options.address
    : (options.source ?? (await sourceAddressTowards(options.address)));
const ia = await openIa(softroce({ addresses: [own] }));
let interrupted = false;
process.once('SIGINT', () => {
  interrupted = true;
  void ia.close();
});
try {
  await (options.role === 'server' ? runServer : runClient)(ia, options);
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`rping: ${interrupted ? 'interrupted' : message}\n`);
  process.exitCode = interrupted ? 130 : 1;
} finally {
  await ia.close();
}
