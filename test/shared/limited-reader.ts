/**
 * A process in a memory cgroup, which takes what one peer writes: `limited-reader.js ADDRESS
 * PROCS`. PROCS is the file of the cgroup that takes processes. It says `ready`, and once a message
 * has come how many packets came through shared memory.
 */
import { writeFileSync } from 'node:fs';
import { openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { CONN_QUAL, Peer } from '../../plugins/testing/suite/peer.js';

const [, , address = '', procs = ''] = process.argv;
writeFileSync(procs, String(process.pid));

const ia = await openIa(softroce({ addresses: [address] }));
const peer = new Peer(ia, { lengthBytes: 1 << 20 });
ia.createPsp({ connQual: CONN_QUAL, evd: peer.evd });
console.log('ready');
const cr = await peer.request();
const privateData = new Uint8Array(12);
const view = new DataView(privateData.buffer);
view.setBigUint64(0, peer.lmr.address);
view.setUint32(8, peer.lmr.rmrContext ?? 0);
peer.ep.postRecv(peer.lmr.segment(0, 64), 1);
cr.accept(peer.ep, { privateData });
await peer.expect('ESTABLISHED');
await peer.evd.wait();
console.log(ia.deviceCounters()['channelReceived']);
await ia.close('abrupt');
