/**
 * rping in TypeScript: the ping-pong of librdmacm's rping over the DAT API. Either end may be the C
 * program: `rping -c -a 10.0.0.1 -v` against `node dist/samples/rping/main.js -s -a 10.0.0.1 -v`.
 */
import { localAddressToward } from 'dapl';

import { runProgram } from '../program.js';
import { runClient } from './client.js';
import { type Options, parseOptions } from './options.js';
import { runServer } from './server.js';

const options = parseOptions(process.argv);

await runProgram('rping', async (open) => {
  const ia = await open(await ownAddress(options), options.provider);
  await (options.role === 'server' ? runServer : runClient)(ia, options);
});

async function ownAddress({ role, address, source }: Options): Promise<string> {
  if (role === 'server') return address;
  return source ?? (await localAddressToward(address));
}
