/** The public part of event dispatchers. */
export {
  Cno,
  type CnoAgent,
  type CnoOptions,
  type CnoParam,
  type CnoWaitOptions,
} from './cno/cno.js';
export type { CnoHandle } from './cno/handle.js';
export { type CnoState } from './cno/states.js';
export { CONNECTION_CAUSES, type ConnectionCause } from './events/connection-causes.js';
export { DatDto, DatDtoStatus } from './events/dto-status.js';
export * from './events/event.js';
export type { Batches } from './queue/batch-iterator.js';
export { EventBatch } from './queue/event-batch.js';
export { Evd, type EvdParam } from './evd.js';
export type { EvdCreateOptions, ModifyUpcallOptions, WaitOptions, WaitResult } from './evd-host.js';
export { type EventConsumerKind, EvdFlags, EvdState } from './common/evd-states.js';
export { type NotifyHandler, Upcall, type UpcallHandler } from './upcall/upcall.js';
export { type PendingChoice, UPCALL_SAME, UpcallPolicy } from './upcall/policy.js';
export { type EvdCounterValues } from './evd-counters.js';
