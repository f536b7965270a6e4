/** The active side: offers a source, then a sink, and compares what comes back. */
import type { Ia } from 'dapl';

import { printable } from '../printable.js';
import { Link } from './link.js';
import type { Options } from './options.js';
import { fillPing, textOf } from './protocol.js';

export async function runClient(ia: Ia, options: Options): Promise<void> {
  const link = new Link(ia, options.sizeBytes);
  await link.connect(options.address, options.port);
  for (let ping = 0; options.count === 0 || ping < options.count; ping++) {
    fillPing(link.source.bytes, ping);
    await link.offer(link.source);
    await link.answer();
    await link.offer(link.sink);
    await link.answer();
    if (options.validate && Buffer.compare(link.source.bytes, link.sink.bytes) !== 0) {
      throw new Error(`ping ${ping} came back changed`);
    }
    if (options.verbose) process.stdout.write(`ping data: ${printable(textOf(link.sink.bytes))}\n`);
  }
  await link.disconnect();
}
