/**
 * mckey in TypeScript: librdmacm's exchange of datagrams by multicast. Either end may be the C
 * program: `mckey -m 239.1.2.3 -b 10.0.0.1` hears what `node dist/samples/mckey/main.js -s
 * -m 239.1.2.3 -b 10.0.0.2` tells.
 */
import { localAddressToward } from 'dapl';

import { runProgram } from '../program.js';
import { hear } from './hear.js';
import { parseOptions } from './options.js';
import { tell } from './tell.js';

const options = parseOptions(process.argv);

await runProgram('mckey', async (open) => {
  const { group, bind, isSender, provider } = options;
  const ia = await open(bind ?? (await localAddressToward(group)), provider);
  await (isSender ? tell(ia, options) : hear(ia, options));
});
