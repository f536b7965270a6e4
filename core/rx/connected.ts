/** Streams of an endpoint's states, and of its connection, that take no event. */
import { distinctUntilChanged, Observable } from 'rxjs';
import { Ep } from '../dat/endpoint/ep.js';
import { EP_STATES, type EpStateName } from '../dat/endpoint/states.js';
import { checkParameter } from '../errors/guards.js';
import { DatError } from '../errors/index.js';

const OVER: readonly EpStateName[] = ['DISCONNECT_PENDING', 'DISCONNECTED'];

/**
 * The states of an endpoint: the present one, and each that follows, in order. Cold, any number of
 * subscribers; completes when the endpoint is freed, never errors. It takes no event: connection
 * events are there for their taker.
 * @throws DatError DAT_INVALID_PARAMETER unless an Ep
 */
export function states(ep: Ep): Observable<EpStateName> {
  checkParameter('states', 'ep', ep, ep instanceof Ep, 'an Ep');
  return new Observable<EpStateName>((subscriber) => ep.state$.subscribe(subscriber)).pipe(
    distinctUntilChanged(),
  );
}

/**
 * Emits the endpoint when it is CONNECTED, and completes. Cold, any number of subscribers; it may
 * be subscribed to before the connection is asked for, and takes no event. Errors with DatError:
 * DAT_INVALID_STATE when the attempt comes to nothing, or the connection is over (its `value` is
 * the flight record; the reason in full is the connection event), DAT_ABORT when the endpoint is
 * freed.
 * @throws DatError DAT_INVALID_PARAMETER unless an Ep
 */
export function connected(ep: Ep): Observable<Ep> {
  const operation = 'connected';
  checkParameter(operation, 'ep', ep, ep instanceof Ep, 'an Ep');
  return new Observable<Ep>((subscriber) => {
    let before: EpStateName | undefined;
    return states(ep).subscribe({
      next: (state) => {
        const isBack = state === 'UNCONNECTED' && before !== undefined;
        before = state;
        if (state === 'CONNECTED') {
          subscriber.next(ep);
          subscriber.complete();
        } else if (isBack || OVER.includes(state)) subscriber.error(notConnected(ep, state));
      },
      complete: () => {
        const message = `endpoint ${ep.id} was freed before it was connected`;
        subscriber.error(new DatError('DAT_ABORT', { operation, message }));
      },
    });
  });
}

function notConnected(ep: Ep, state: EpStateName): DatError {
  const value = ep.isFreed ? [] : ep.flightRecord();
  const last = value.at(-1);
  return new DatError('DAT_INVALID_STATE', {
    subtype: EP_STATES[state].subtype,
    operation: 'connected',
    message: `endpoint ${ep.id} is ${state}${last === undefined ? '' : ` (${last})`}`,
    hint: 'the connection event says why',
    value,
  });
}
