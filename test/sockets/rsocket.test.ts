// Sockets and programs over rsockets: on the simulated fabric, and on softroce.

import { rsocket } from '../../samples/ulp/rsocket/index.js';
import { describePrograms } from './programs-suite.js';
import { worldsOf } from './rdma-worlds.js';
import { describeSockets } from './socket-suite.js';

const { mock, mockIpv6, softroce } = worldsOf(rsocket, 61);

for (const [name, open] of [
  ['rsockets, simulated', mock],
  ['rsockets, simulated, IPv6', mockIpv6],
  ['rsockets on softroce', softroce],
] as const) {
  describeSockets(name, open);
  describePrograms(name, open);
}
