/** Completions as event objects: convenient and slow. `EventBatch` is the fast way. */
import {
  DatDto,
  dtoEventNumber,
  dtoOf,
  DtoCompletion,
  type DtoCompletionEvent,
  dtoStatusOf,
} from '../../evd/index.js';
import { CQE, WcFlags, WcOpcode, WcStatus } from '../../spi/index.js';
import type { Ep } from '../endpoint/ep.js';

/** True if a completion comes from a receive queue; `control` is its first word. */
export function isReceive(control: number): boolean {
  return ((control >>> 8) & WcOpcode.RECV) !== 0;
}

export function dtoEvent(ep: Ep, words: Uint32Array, at: number): DtoCompletionEvent {
  const control = words[at + CQE.CONTROL] ?? 0;
  const status = control & 0xff;
  const flags = (control >>> 16) & 0xff;
  const operation = dtoOf((control >>> 8) & 0xff, flags);
  const immediate = words[at + CQE.IMMEDIATE_OR_INVALIDATE] ?? 0;
  const arrived = status === WcStatus.SUCCESS && operation !== DatDto.RDMA_WRITE_IMMED;
  const event = new DtoCompletion(
    dtoEventNumber(operation),
    ep,
    (words[at + CQE.COOKIE_LO] ?? 0) + (words[at + CQE.COOKIE_HI] ?? 0) * 2 ** 32,
    dtoStatusOf(status),
    status === WcStatus.SUCCESS ? (words[at + CQE.BYTE_LENGTH] ?? 0) : 0,
    operation,
  );
  if (arrived && (flags & WcFlags.WITH_IMM) !== 0) event.immediate = immediate;
  if (arrived && (flags & WcFlags.WITH_INV) !== 0) event.invalidatedRmrContext = immediate;
  if (status !== WcStatus.SUCCESS) event.vendorError = words[at + CQE.VENDOR_ERROR] ?? 0;
  return event;
}
