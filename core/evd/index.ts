/** Event dispatchers, events, upcalls. */
export { Cno, type CnoOptions } from './cno/cno.js';
export { callLine } from './common/api-trace.js';
export {
  type CompletionOwner,
  CompletionOwners,
  type CompletionView,
} from './queue/completion-owner.js';
export { CONNECTION_CAUSES, type ConnectionCause } from './events/connection-causes.js';
export { Counters, readCounters } from './common/counters.js';
export { DatDto, DatDtoStatus, dtoEventNumber, dtoOf, dtoStatusOf } from './events/dto-status.js';
export {
  BindCompletion,
  DatagramCompletion,
  DtoCompletion,
  XrcReceive,
} from './events/event-classes.js';
export * from './events/event.js';
export type { EventSink } from './queue/event-sink.js';
export { EventBatch } from './queue/event-batch.js';
export { Evd } from './evd.js';
export type { OverrunListener } from './evd-record.js';
export type { EvdHost, EvdCreateOptions, EvdOptions, ModifyUpcallOptions } from './evd-host.js';
export {
  EVD_STREAM_MERGING,
  type EvdConfiguration,
  EvdFlags,
  EvdState,
} from './common/evd-states.js';
export { callingUpcall } from './upcall/runner.js';
export { Upcall, type UpcallHandler, currentUpcall } from './upcall/upcall.js';
export { type PendingChoice, UPCALL_SAME, UpcallPolicy } from './upcall/policy.js';
export { checkUpcall } from './evd-checks.js';
export { checkSubscriber } from './common/checks.js';
export { isPromiseLike, type UpcallLessee } from './upcall/runner.js';
export { unhandled } from './evd-errors.js';
