// Two processes of one guest: one serves, the other writes without end, and may be killed.
import assert from 'node:assert/strict';
import { DatEventNumber, nameOf, RemoteSegment } from 'dapl';
import { load } from './load.js';
import { say } from './say.js';
import { PORT, Side } from './side.js';

/** Of its memory, in the private data of an answer: address and context. */
const KEY_BYTES = 12;

/** Serves so many clients, one after the other. */
export async function serve(
  address: string,
  clients: number,
  onListening: () => void = () => undefined,
): Promise<void> {
  const side = await Side.open({ address });
  const psp = side.ia.createPsp({ connQual: PORT, evd: side.evd });
  say('listening');
  onListening();
  const { address: where, rmrContext } = side.remote();
  const key = new DataView(new ArrayBuffer(KEY_BYTES));
  key.setBigUint64(0, where);
  key.setUint32(8, rmrContext);
  for (let client = 1; client <= clients; client++) {
    const event = await side.next();
    assert.equal(event.type, 'connection-request');
    const ep = side.endpoint();
    event.cr.accept(ep, { privateData: new Uint8Array(key.buffer) });
    await side.expect('ESTABLISHED');
    const { number } = await side.next();
    say(`client ${client}: ${nameOf(DatEventNumber, number)}`);
    ep.free();
  }
  psp.free();
  await side.ia.close();
}

/** Writes so many times, or until it is killed. */
export async function drive(address: string, requests: string): Promise<void> {
  const side = await Side.open({ address });
  const ep = side.endpoint();
  ep.connect({ address, connQual: PORT });
  const event = await side.next();
  assert.equal(event.type === 'connection' && event.number, DatEventNumber.ESTABLISHED);
  const { privateData } = event as { privateData: Uint8Array };
  const key = new DataView(privateData.buffer, privateData.byteOffset);
  const target = new RemoteSegment({ address: key.getBigUint64(0), rmrContext: key.getUint32(8) });
  const onSuccess = (count: number): void => {
    if (count === 200) say('under load');
  };
  const limit = requests === 'forever' ? Infinity : Number(requests);
  const { succeeded } = await load(
    side,
    ep,
    { remote: () => target },
    { requests: limit, onSuccess },
  );
  say(`succeeded: ${succeeded}`);
  ep.disconnect();
  await side.expect('DISCONNECTED');
  await side.ia.close();
}
