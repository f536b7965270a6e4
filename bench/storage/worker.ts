/** The target's process: one disk in memory, over iSER and TCP. */
import { openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { IscsiTarget, MemoryBackend } from '../../samples/ulp/iser/index.js';

/** What the process is told by its arguments. */
const [address = '127.0.0.2', sizeText = '67108864', port = 'udp'] = process.argv.slice(2);
const TARGET = 'iqn.2026-01.io.dapl:bench';

const ia = await openIa(softroce({ addresses: [address], shm: port === 'shm' }));
const disk = new MemoryBackend({ sizeBytes: Number(sizeText), blockBytes: 512 });
// Every page is there before it is measured.
const zeroes = new Uint8Array(1 << 20);
for (let lba = 0n; lba < disk.blockCount; lba += 2048n) await disk.write(lba, zeroes);
const target = new IscsiTarget({
  name: TARGET,
  luns: new Map([[0, disk]]),
  memoryBytes: 64 << 20,
  onNote: (note) => void process.stderr.write(`target: ${note}\n`),
});
target.listenIser(ia);
const portal = await target.listenTcp(address, 0);
const tcpPort = Number(portal.name.split(':').at(-1));
process.send?.({ target: TARGET, address, tcpPort });
process.on('disconnect', () => process.exit(0));
