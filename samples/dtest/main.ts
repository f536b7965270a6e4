/**
 * dtest in TypeScript: uDAPL's first test over the DAT API. Either end may be the C program:
 * `dtest -h 10.0.0.1 -P ofa-v2-rxe -b 4096` against
 * `node dist/samples/dtest/main.js -I 10.0.0.1 -P ofa-v2-rxe -b 4096`.
 */
import { localAddressToward } from 'dapl';

import { runProgram } from '../program.js';
import { introduceServer, meetServer } from './introduction.js';
import { parseOptions } from './options.js';
import { runClient, runServer } from './test-run.js';

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

await runProgram('dtest', async (open) => {
  const options = parseOptions(process.argv);
  const { host, source = '', provider, announced } = options;
  if (host === undefined) {
    const ia = await open(source, provider);
    return runServer(ia, options, print, () => {
      print(`Server is waiting for client connection to send server info`);
      return introduceServer(source, { address: source, provider: announced });
    });
  }
  const { address = host } = await meetServer(host);
  const ia = await open(options.source ?? (await localAddressToward(address)), provider);
  return runClient(ia, address, options, print);
});
