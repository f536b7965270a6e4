/** Connections of an initiator. */
export { type IserLimits, IserInitiatorMover } from './iser-mover.js';
export { InitiatorMemory } from './memory.js';
export type { InitiatorMover, MakeMover, MoverHost, Portal } from './mover.js';
export { TcpInitiatorMover } from './tcp-mover.js';
