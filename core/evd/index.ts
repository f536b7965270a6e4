/** Event dispatchers, events, upcalls. */
export { traceCall } from './api-trace.js';
export { type CompletionOwner, CompletionOwners } from './completion-owner.js';
export { DatDto, DatDtoStatus, dtoOf, dtoStatusOf } from './dto-status.js';
export * from './event.js';
export { EventBatch } from './event-batch.js';
export type { EventSink, EventSource } from './event-sink.js';
export type { EventPlace } from './event-store.js';
export { Evd, type EvdParam } from './evd.js';
export type {
  EvdHost,
  EvdCreateOptions,
  EvdOptions,
  ModifyUpcallOptions,
  WaitOptions,
  WaitResult,
} from './evd-host.js';
export { type EvdConfiguration, EvdFlags, EvdState, type EvdTaker } from './evd-states.js';
export { type NotifyHandler, Upcall, type UpcallHandler } from './upcall.js';
export { type PendingChoice, UPCALL_SAME, UpcallPolicy } from './upcall-policy.js';
