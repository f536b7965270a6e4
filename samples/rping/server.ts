/** The passive side: serves one client, then ends. */
import type { Ia } from 'dapl';
import { type Connection, listen } from 'dapl/flow';

import { printable } from '../printable.js';
import type { Options } from './options.js';
import {
  type BufferPlace,
  GO_AHEAD,
  placeOf,
  RECEIVES,
  STEP,
  textLength,
  textOf,
} from './protocol.js';

export async function runServer(ia: Ia, options: Options): Promise<void> {
  await using conn = await oneClient(ia, options);
  const lmr = ia.allocate(options.sizeBytes, { pz: conn.ep.pz });
  for await (const offer of conn) {
    const source = placeOf(offer.bytes);
    checkFits(source, options);
    const data = lmr.segment(0, source.length);
    await conn.read(data, source, STEP);
    if (options.verbose) {
      process.stdout.write(`server ping data: ${printable(textOf(data.bytes))}\n`);
    }
    await conn.send(GO_AHEAD, STEP);
    const sink = placeOf((await conn.receive(STEP)).bytes);
    await conn.write(lmr.segment(0, textLength(data.bytes)), sink, STEP);
    await conn.send(GO_AHEAD, STEP);
  }
}

/** Accepts the first client; later ones are refused. */
async function oneClient(ia: Ia, { address, port }: Options): Promise<Connection> {
  await using listener = await listen(ia, { port, ...RECEIVES });
  process.stdout.write(`listening on ${address}, port ${port}\n`);
  return await listener.accept();
}

function checkFits({ length }: BufferPlace, { sizeBytes }: Options): void {
  if (length <= sizeBytes) return;
  throw new Error(`the peer's buffer has ${length} bytes, ours ${sizeBytes}: use -S`);
}
