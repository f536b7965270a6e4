/** Real clock, random numbers and timer, for a provider on a real machine. */
export { bindNode, type HostNode } from './bind-node.js';
export { clockOffsetUs, monotonicClock } from './machine.js';
export { EventLoop, type HostTime, type LoopCalls } from './event-loop.js';
export { machineTime, NODE_CALLS } from './machine-time.js';
export { ProcessHoldCounter } from './process.js';
export { onExit } from './process.js';
export { loadAddon, type LoadedAddon, packageFile } from './load-addon.js';
export { NextTurn } from './next-turn.js';
export { Numbered } from './port-tables.js';
export { PathTable } from './port-tables.js';
export { RegionTable, checkRegion, copyBytes, offsetAt } from './port-tables.js';
export { type FileMapper, mapFile } from './mapped-memory.js';
export {
  UNIX_MESSAGE,
  type UnixIdentity,
  type UnixListener,
  type UnixMessage,
  type UnixSocket,
  type UnixSockets,
} from './unix-sockets.js';
export { type MemorySharer, shareMemory } from './mapped-memory.js';
export { SystemRandom } from './machine.js';
export { RealTimer } from './real-timer.js';
