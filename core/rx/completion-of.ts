/** The end of one request as a stream, and the error of a failed completion. */
import { Observable } from 'rxjs';
import { DatDto, DatDtoStatus } from '../evd/index.js';
import { Ep } from '../dat/endpoint/ep.js';
import { checkInteger, checkParameter } from '../errors/guards.js';
import { DatError, type DatType } from '../errors/index.js';
import { nameOf } from '../spi/index.js';
import { completionsOf, type RequestCompletion } from './completions.js';

/** Error codes of failed completions; all others are DAT_ABORT. */
const CODES: Readonly<Partial<Record<DatDtoStatus, DatType>>> = {
  [DatDtoStatus.LOCAL_LENGTH]: 'DAT_LENGTH_ERROR',
  [DatDtoStatus.LOCAL_PROTECTION]: 'DAT_PROTECTION_VIOLATION',
  [DatDtoStatus.REMOTE_ACCESS]: 'DAT_PRIVILEGES_VIOLATION',
};

/**
 * The completion of the request with this cookie, as a cold Observable: it emits the event and
 * completes. Subscribe before the next turn of the event loop, as events are handed over from the
 * pump and never inside a call; a completion that came before waits while nothing else takes the
 * endpoint's completions. Of several subscribers with one cookie each gets a completion of its own,
 * in the order of subscribing.
 *
 * Errors with DatError when the request has failed (its `value` is the event, whose `status` says
 * why): DAT_LENGTH_ERROR, DAT_PROTECTION_VIOLATION, DAT_PRIVILEGES_VIOLATION, or else DAT_ABORT;
 * that too when the endpoint is freed before. A request that was posted with SUPPRESS, and
 * succeeds, has no completion. DAT_INVALID_STATE when the endpoint was made with a `requestEvd`, or
 * when something else takes its completions (`ep.completions$`).
 * @param ep made without a `requestEvd`
 * @param cookie that the request was posted with
 * @throws DatError DAT_INVALID_PARAMETER
 */
export function completionOf(ep: Ep, cookie: number): Observable<RequestCompletion> {
  const operation = 'completionOf';
  checkParameter(operation, 'ep', ep, ep instanceof Ep, 'an Ep');
  checkInteger(operation, 'cookie', cookie, 0, Number.MAX_SAFE_INTEGER);
  return new Observable((subscriber) =>
    completionsOf(operation, ep, 'requestEvd').claim(cookie, {
      completed(event) {
        if (event.status === DatDtoStatus.SUCCESS) {
          subscriber.next(event);
          subscriber.complete();
        } else subscriber.error(failure(operation, event));
      },
      lost() {
        const message = `endpoint ${ep.id} was freed before request ${cookie} completed`;
        subscriber.error(new DatError('DAT_ABORT', { operation, message, value: cookie }));
      },
    }),
  );
}

/** The error for a failed completion. @param hint what to do about it */
export function failure(operation: string, event: RequestCompletion, hint?: string): DatError {
  const { cookie, status, ep } = event;
  const what = event.type === 'dto' ? nameOf(DatDto, event.operation) : 'BIND_MW';
  const message = `${what} ${cookie} of endpoint ${ep.id}: ${nameOf(DatDtoStatus, status)}`;
  const code = CODES[status] ?? 'DAT_ABORT';
  return new DatError(code, { operation, message, value: event, hint });
}
