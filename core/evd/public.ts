/** What consumers see of event dispatchers. */
export { DatDto, DatDtoStatus } from './dto-status.js';
export * from './event.js';
export { EventBatch } from './event-batch.js';
export { Evd, type EvdParam } from './evd.js';
export type { EvdCreateOptions, ModifyUpcallOptions, WaitOptions, WaitResult } from './evd-host.js';
export { EvdFlags, EvdState, type EvdTaker } from './evd-states.js';
export { type NotifyHandler, Upcall, type UpcallHandler } from './upcall.js';
export { type PendingChoice, UPCALL_SAME, UpcallPolicy } from './upcall-policy.js';
