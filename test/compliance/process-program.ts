/**
 * One side of a connection between two processes, for process.long.test.ts:
 *
 *   process-program.js udp|shm listen|connect|write|wait|idle <own address> [<peer address>]
 */
import { openIa, RemoteSegment } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { CONN_QUAL, Peer, textOf } from '../../plugins/testing/suite/peer.js';

const LENGTH = 300_000;
const [, , way, role, own = '', to = ''] = process.argv;
const say = (text: string): void => void process.stdout.write(`${text}\n`);

const ia = await openIa(softroce({ addresses: [own], shm: way === 'shm' }));
const attributes = { transport: { ackTimeout: 10, retryCount: 3 } };
const peer = new Peer(ia, { lengthBytes: LENGTH, attributes });
if (role === 'listen') await listen();
else if (role === 'connect') await connectAndWrite();
else if (role === 'write') await writeUntilBroken();
else if (role === 'wait') await waitUntilBroken();
say('done');

/** Tells where to write; what has been written comes with the peer's message. */
async function listen(): Promise<void> {
  const { address, rmrContext = 0 } = peer.lmr;
  const privateData = new Uint8Array(12);
  const view = new DataView(privateData.buffer);
  view.setBigUint64(0, address);
  view.setUint32(8, rmrContext);
  const psp = ia.createPsp({ connQual: CONN_QUAL, evd: peer.evd });
  say('listening');
  const cr = await peer.request();
  psp.free();
  peer.ep.postRecv([], 1);
  cr.accept(peer.ep, { privateData });
  await peer.expect('ESTABLISHED', 'dto 1 SUCCESS');
  say(`sum ${peer.lmr.bytes.reduce((sum, byte) => sum + byte, 0)}`);
  await peer.expect('DISCONNECTED');
  await ia.close();
}

/** Leaves without closing: nothing that is over keeps the process alive. */
async function connectAndWrite(): Promise<void> {
  const remote = await connect();
  peer.lmr.bytes.fill(3);
  peer.ep.postRdmaWrite(peer.lmr.segment(), 1, remote);
  peer.ep.postSend([], 2);
  await peer.expect('dto 1 SUCCESS', 'dto 2 SUCCESS');
  peer.ep.disconnect('graceful');
  await peer.expect('DISCONNECTED');
}

/** The listener is going to be killed. */
async function writeUntilBroken(): Promise<void> {
  const remote = await connect();
  say('writing');
  let text = '';
  while (!text.endsWith('TRANSPORT')) {
    peer.ep.postRdmaWrite(peer.lmr.segment(), 1, remote);
    text = textOf(await peer.next());
  }
  await new Promise((resolve) => setTimeout(resolve, 50));
  const broken = peer.drain().filter((event) => event === 'BROKEN');
  say(`TRANSPORT, ${broken.length} BROKEN`);
}

/** The same, and there is nothing to do until then. */
async function waitUntilBroken(): Promise<void> {
  await connect();
  peer.ep.postRecv([], 1);
  say('waiting');
  let event = await peer.next();
  while (event.type !== 'connection') event = await peer.next();
  say(`${textOf(event)} ${event.cause}`);
}

async function connect(): Promise<RemoteSegment> {
  peer.ep.connect({ address: to, connQual: CONN_QUAL });
  const [event] = await peer.expect('ESTABLISHED');
  if (event?.type !== 'connection') throw new Error('no connection event');
  const { buffer, byteOffset } = event.privateData;
  const view = new DataView(buffer, byteOffset);
  return new RemoteSegment({ address: view.getBigUint64(0), rmrContext: view.getUint32(8) });
}
