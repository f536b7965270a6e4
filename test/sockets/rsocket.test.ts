// Sockets and programs over rsockets: on the simulated fabric, and on softroce.

import { type Ia, openIa } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';
import { softroce } from 'dapl/providers/softroce';
import { rsocket } from '../../samples/rsocket/index.js';
import { loopback } from '../support/loopback.js';
import { describePrograms } from './programs-suite.js';
import { describeSockets } from './socket-suite.js';
import type { SocketWorld } from './world.js';

const NETWORK = 61;

function worldOf(here: Ia, there: Ia): SocketWorld {
  return {
    client: rsocket(here),
    server: rsocket(there),
    address: there.address,
    close: async () => void (await Promise.all([here.close(), there.close()])),
  };
}

async function simulated(): Promise<SocketWorld> {
  const fabric = new Fabric({ seed: 1, autoRun: true });
  return worldOf(
    await openIa(mock({ fabric, address: '192.0.2.2' })),
    await openIa(mock({ fabric, address: '192.0.2.1' })),
  );
}

async function onLoopback(): Promise<SocketWorld> {
  const [here, there] = [loopback(NETWORK, 2), loopback(NETWORK, 1)];
  return worldOf(
    await openIa(softroce({ addresses: [here] })),
    await openIa(softroce({ addresses: [there] })),
  );
}

for (const [name, open] of [
  ['rsockets, simulated', simulated],
  ['rsockets on softroce', onLoopback],
] as const) {
  describeSockets(name, open);
  describePrograms(name, open);
}
