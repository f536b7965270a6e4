/** Event dispatchers as parameters, and private ones, which are offered as streams. */
import { show } from '../../spi/checks/index.js';
import { type DatEvent, Evd, EvdFlags } from '../../evd/index.js';
import { DatError } from '../../errors/index.js';
import type { Observable } from '../../stream/index.js';

/** The use of an EVD. */
export type EvdUse = 'recv' | 'request' | 'connect' | 'cr';

const USES = {
  recv: { stream: EvdFlags.DTO, name: 'DTO', subtype: 'DAT_INVALID_HANDLE_EVD_RECV' },
  request: { stream: EvdFlags.DTO, name: 'DTO', subtype: 'DAT_INVALID_HANDLE_EVD_REQUEST' },
  connect: {
    stream: EvdFlags.CONNECTION,
    name: 'CONNECTION',
    subtype: 'DAT_INVALID_HANDLE_EVD_CONN',
  },
  cr: { stream: EvdFlags.CR, name: 'CR', subtype: 'DAT_INVALID_HANDLE_EVD_CR' },
} as const;

/**
 * An EVD of this adapter that takes the stream.
 * @throws DatError DAT_INVALID_HANDLE
 */
export function checkEvd(
  operation: string,
  use: EvdUse,
  evd: unknown,
  ours: ReadonlySet<Evd>,
): asserts evd is Evd {
  const { stream, name, subtype } = USES[use];
  const refuse = (message: string, hint?: string): DatError =>
    new DatError('DAT_INVALID_HANDLE', { subtype, operation, message, hint, value: evd });
  if (!(evd instanceof Evd)) {
    throw refuse(`${use}Evd is ${show(evd)}; it must be an Evd`, 'ia.createEvd() makes them');
  }
  if (evd.isFreed) throw refuse(`event dispatcher ${evd.id} has been freed`);
  if (!ours.has(evd)) {
    throw refuse(`event dispatcher ${evd.id} belongs to another interface adapter`);
  }
  if ((evd.streams & stream) === 0) {
    const hint = `create it with streams that have EvdFlags.${name}`;
    throw refuse(`event dispatcher ${evd.id} was made without EvdFlags.${name}`, hint);
  }
}

/** @throws DatError DAT_INVALID_STATE when the EVD is the consumer's own */
export function streamOf<E extends DatEvent>(
  operation: string,
  evd: Evd,
  isPrivate: boolean,
): Observable<E> {
  checkPrivate(operation, evd, isPrivate);
  // A private EVD is fed by one kind of stream only.
  return evd.events$ as Observable<E>;
}

/** @throws DatError DAT_INVALID_STATE when the EVD is the consumer's own */
export function checkPrivate(operation: string, evd: Evd, isPrivate: boolean): void {
  if (isPrivate) return;
  throw new DatError('DAT_INVALID_STATE', {
    subtype: 'DAT_INVALID_STATE_EVD_IN_USE',
    operation,
    message: `these events go to event dispatcher ${evd.id}`,
    hint: 'subscribe to its events$, or use upcalls(evd, …) of dapl/rx',
    value: evd,
  });
}

/** Sets whether consumers of a private EVD keep the process alive. Its owner decides. */
export function keepProcessFor(evd: Evd, wanted: boolean): void {
  if (wanted) evd.ref();
  else evd.unref();
}
