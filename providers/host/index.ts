/** Real clock, random numbers and timer, for a provider on a real machine. */
export { bindNode, type HostNode } from './bind-node.js';
export { clockOffsetUs, monotonicClock } from './clock.js';
export { EventLoop, type LoopCalls } from './event-loop.js';
export { ProcessHoldCounter } from './process-hold.js';
export { onExit } from './on-exit.js';
export { loadAddon, type LoadedAddon, packageFile } from './load-addon.js';
export { NextTurn } from './next-turn.js';
export { Numbered } from './handle-table.js';
export { PathTable } from './path-table.js';
export { RegionTable, checkRegion, copyBytes, offsetAt } from './region-table.js';
export { type FileMapper, mapFile } from './map-file.js';
export {
  UNIX_MESSAGE,
  type UnixIdentity,
  type UnixListener,
  type UnixMessage,
  type UnixSocket,
  type UnixSockets,
} from './unix-sockets.js';
export { type MemorySharer, shareMemory } from './share-memory.js';
export { SystemRandom } from './random.js';
export { RealTimer } from './real-timer.js';
