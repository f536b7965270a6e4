// Sockets and programs over SDP: on the simulated fabric, and on softroce, in all modes.

import { type SdpOptions, sdp } from '../../samples/ulp/sdp/index.js';
import { hasLongCases } from '../support/lane.js';
import { describePrograms } from './programs-suite.js';
import { worldsOf } from './rdma-worlds.js';
import { describeSockets } from './socket-suite.js';

/** As much as rsockets have: the suites write more than that, and want it to be held back. */
const RECEIVES = { receives: 8, receiveBytes: 32_768 };

const WORLDS: readonly (readonly [string, 'mock' | 'softroce', SdpOptions])[] = [
  ['SDP, simulated', 'mock', RECEIVES],
  ['SDP on softroce', 'softroce', RECEIVES],
  ['SDP on softroce, nothing copied', 'softroce', { zeroCopyBytes: 64, offersSink: true }],
];

/** Programs wait for the peer's word on what the last mode does not copy: it is long. */
const tried = hasLongCases ? WORLDS : WORLDS.slice(0, -1);

tried.forEach(([name, device, options], i) => {
  const open = worldsOf((ia) => sdp(ia, options), 62 + i)[device];
  describeSockets(name, open);
  describePrograms(name, open);
});
