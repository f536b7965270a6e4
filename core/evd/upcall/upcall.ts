/** The consumer's side of an upcall. */
import { showAs } from '../../spi/checks/index.js';
import type { DatEvent } from '../events/event.js';
import type { Evd } from '../evd.js';
import { UPCALL_SAME } from './policy.js';

/**
 * An upcall in progress, passed to the handler. An asynchronous handler passes it to calls that
 * wait for upcalls to end (or uses `teardown` and `free` here), so that they do not wait for their
 * own caller. The synchronous part of a handler need not.
 */
export class Upcall {
  static {
    showAs(this, 'Upcall', ({ evd, moreEvents }) => ({ evd, moreEvents }));
  }

  /** Pending calls that wait on behalf of this upcall. */
  waits = 0;

  constructor(
    readonly evd: Evd,
    /** True if more events are queued in the EVD. */
    readonly moreEvents: boolean,
  ) {}

  /** `evd.modifyUpcall('TEARDOWN')` from within: waits for the other upcalls only. */
  teardown(): Promise<void> {
    return this.evd.modifyUpcall('TEARDOWN', UPCALL_SAME, { upcall: this });
  }

  /** `evd.free()` from within: waits for the other upcalls only. */
  free(): Promise<void> {
    return this.evd.free({ upcall: this });
  }
}

/**
 * @param event undefined under NOTIFY, where the consumer dequeues
 * @returns a promise if the upcall is to last until it settles
 */
export type UpcallHandler = (event: DatEvent, upcall: Upcall) => void | PromiseLike<void>;
/** The handler under NOTIFY: it gets no event and dequeues. */
export type NotifyHandler = (event: undefined, upcall: Upcall) => void | PromiseLike<void>;

let current: Upcall | undefined;

/** The upcall whose handler is on the call stack, of any EVD. */
export function currentUpcall(): Upcall | undefined {
  return current;
}

/** Calls a handler with its upcall as the current one. */
export function callHandler(
  handler: UpcallHandler | NotifyHandler,
  event: DatEvent | undefined,
  upcall: Upcall,
): void | PromiseLike<void> {
  const outer = current;
  current = upcall;
  try {
    return (handler as (event: DatEvent | undefined, upcall: Upcall) => void | PromiseLike<void>)(
      event,
      upcall,
    );
  } finally {
    current = outer;
  }
}
