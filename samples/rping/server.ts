/** The passive side: serves one client, and ends with it. */
import type { Ia } from 'dapl';

import { printable } from '../printable.js';
import { Link } from './link.js';
import type { Options } from './options.js';
import { textLength, textOf } from './protocol.js';

export async function runServer(ia: Ia, options: Options): Promise<void> {
  const requests = ia.createEvd({ qlen: 4 });
  const psp = ia.createPsp({ connQual: options.port, evd: requests });
  process.stdout.write(`listening on ${options.address}, port ${options.port}\n`);
  const { event } = await requests.wait();
  if (event.type !== 'connection-request') throw new Error(`a ${event.type} event at the psp`);
  psp.free();
  const link = new Link(ia, options.sizeBytes);
  await link.accept(event.cr);
  for (;;) {
    const source = await link.receive();
    if (source === undefined) break;
    const data = await link.read(source);
    if (options.verbose) process.stdout.write(`server ping data: ${printable(textOf(data))}\n`);
    await link.goAhead();
    const sink = await link.receive();
    if (sink === undefined) throw new Error('the client has left in the middle of a ping');
    await link.write(sink, textLength(data));
    await link.goAhead();
  }
  await link.disconnect();
}
