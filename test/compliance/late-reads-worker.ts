/** The reader of late-reads.test.ts: a thread that looks at what it is answered when it is told. */
import { parentPort, workerData } from 'node:worker_threads';
import { openIa, RemoteSegment } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { GO, MAIN_SLEEPS, POSTED, type ReaderData, waitFor } from './late-reads-turns.js';
import { CONN_QUAL, Peer, textOf } from '../../plugins/testing/suite/peer.js';

const { own, to, lengthBytes, turn } = workerData as ReaderData;
const turnOver = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const ia = await openIa(softroce({ addresses: [own], shm: false }));
const attributes = { transport: { ackTimeout: 14, retryCount: 3 } };
const peer = new Peer(ia, { lengthBytes, attributes });
peer.ep.connect({ address: to, connQual: CONN_QUAL });
const [event] = await peer.expect('ESTABLISHED');
if (event?.type !== 'connection') throw new Error('no connection event');
const { buffer, byteOffset } = event.privateData;
const view = new DataView(buffer, byteOffset);
const remote = new RemoteSegment({ address: view.getBigUint64(0), rmrContext: view.getUint32(8) });

parentPort?.postMessage('ready');
waitFor(turn, MAIN_SLEEPS);
peer.ep.postRdmaRead(peer.lmr.segment(0, lengthBytes), 1, remote);
for (let i = 0; i < 3; i++) await turnOver();
Atomics.store(turn, 0, POSTED);
Atomics.notify(turn, 0);
waitFor(turn, GO);
const result = textOf(await peer.next());
parentPort?.postMessage({ result, bytes: peer.lmr.bytes.slice() });
await ia.close('abrupt');
