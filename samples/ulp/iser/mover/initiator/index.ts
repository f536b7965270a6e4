/** Connections of an initiator. */
export { IserInitiatorMover } from './iser-mover.js';
export { InitiatorMemory } from './memory.js';
export type { InitiatorMover, MakeMover, Portal } from './mover.js';
export { TcpInitiatorMover } from './tcp-mover.js';
