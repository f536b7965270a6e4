/** Posting of binds: what `rmr.bind` and `rmr.unbind` do on an endpoint. */
import { DatError } from '../../errors/index.js';
import { EvdFlags } from '../../evd/index.js';
import { CompletionFlags } from '../common/constants.js';
import type { EpRecord } from '../endpoint/endpoint-state.js';
import { checkCookie, checkFlags } from '../work/post-checks.js';

const { SUPPRESS, UNSIGNALLED, BARRIER_FENCE } = CompletionFlags;

/**
 * Whether a bind may be posted now, with room for so many entries.
 * @throws DatError
 */
export function checkBind(
  record: EpRecord,
  operation: string,
  cookie: number,
  flags: number,
  entries: number,
): void {
  record.assertLive(operation);
  record.checkLegal(operation, 'bindRmr');
  checkCookie(operation, cookie);
  const unsignalled = record.attributes.requestCompletionFlags & UNSIGNALLED;
  checkFlags(operation, flags, SUPPRESS | BARRIER_FENCE | unsignalled);
  checkBindEvd(record, operation);
  const { sends } = record.queues;
  if (sends.free < entries) record.takeInCompletions();
  if (sends.free >= entries) return;
  throw new DatError('DAT_INSUFFICIENT_RESOURCES', {
    subtype: 'DAT_RESOURCE_CREDITS',
    operation,
    message: `it takes ${entries} entries of the request queue; ${sends.free} are free`,
    hint: 'wait for completions, or ask for more in the endpoint attributes',
    value: sends.free,
  });
}

function checkBindEvd({ init }: EpRecord, operation: string): void {
  const { requestEvd } = init;
  if ((requestEvd.streams & EvdFlags.RMR_BIND) !== 0) return;
  throw new DatError('DAT_INVALID_STATE', {
    subtype: 'DAT_INVALID_STATE_EP_EVD_REQUEST',
    operation,
    message: `event dispatcher ${requestEvd.id} of the endpoint was made without EvdFlags.RMR_BIND`,
    hint: 'give the endpoint a requestEvd whose streams have EvdFlags.RMR_BIND',
    value: requestEvd,
  });
}
