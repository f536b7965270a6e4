// Sockets and programs over SDP: on the simulated fabric, and on softroce, in all modes.

import { type SdpOptions, sdp } from '../../samples/sdp/index.js';
import { describePrograms } from './programs-suite.js';
import { worldsOf } from './rdma-worlds.js';
import { describeSockets } from './socket-suite.js';

const WORLDS: readonly (readonly [string, 'mock' | 'softroce', SdpOptions])[] = [
  ['SDP, simulated', 'mock', {}],
  ['SDP on softroce', 'softroce', {}],
  ['SDP on softroce, nothing copied', 'softroce', { zeroCopyBytes: 64, offersSink: true }],
];

WORLDS.forEach(([name, device, options], i) => {
  const open = worldsOf((ia) => sdp(ia, options), 62 + i)[device];
  describeSockets(name, open);
  describePrograms(name, open);
});
