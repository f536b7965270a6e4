/**
 * udaddy in TypeScript: librdmacm's exchange of datagrams over the DAT API. Either end may be the C
 * program: `udaddy -s 10.0.0.1` against `node dist/samples/udaddy/main.js -b 10.0.0.1`.
 */
import { localAddressToward } from 'dapl';

import { runProgram } from '../program.js';
import { runClient } from './client.js';
import { parseOptions } from './options.js';
import { runServer } from './server.js';

const options = parseOptions(process.argv);

await runProgram('udaddy', async (open) => {
  const { server, bind, provider } = options;
  const ia = await open(bind ?? (await localAddressToward(server ?? '')), provider);
  await (server === undefined ? runServer(ia, options) : runClient(ia, server, options));
});
