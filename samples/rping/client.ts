/** The active side: offers a source, then a sink, and compares the data that comes back. */
import type { Ia } from 'dapl';
import { connect } from 'dapl/flow';

import { printable } from '../printable.js';
import type { Options } from './options.js';
import { fillPing, placeMessage, RECEIVES, STEP, textOf } from './protocol.js';

const CONNECT_TIMEOUT_MS = 2000;

export async function runClient(ia: Ia, options: Options): Promise<void> {
  const { address, port, sizeBytes, count } = options;
  await using conn = await connect(ia, {
    ...{ address, port, timeoutMs: CONNECT_TIMEOUT_MS },
    ...RECEIVES,
  });
  const source = conn.expose(sizeBytes, 'read');
  const sink = conn.expose(sizeBytes, 'write');
  for (let ping = 0; count === 0 || ping < count; ping++) {
    fillPing(source.bytes, ping);
    for (const buffer of [source, sink]) {
      await conn.send(placeMessage(buffer), STEP);
      // Any answer means "go ahead".
      await conn.receive(STEP);
    }
    if (options.validate && Buffer.compare(source.bytes, sink.bytes) !== 0) {
      throw new Error(`ping ${ping} came back changed`);
    }
    if (options.verbose) process.stdout.write(`ping data: ${printable(textOf(sink.bytes))}\n`);
  }
}
