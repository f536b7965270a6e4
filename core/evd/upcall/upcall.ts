/** The consumer's side of an upcall. */
import { showAs } from '../../spi/checks/index.js';
import type { DatEvent } from '../events/event.js';
import type { UpcallToken } from './gate.js';
import { UPCALL_SAME } from './policy.js';

/** Calls that an upcall can make on its EVD without waiting for itself. */
export interface UpcallOwner {
  readonly id: number;
  modifyUpcall(
    policy: 'TEARDOWN',
    handler: typeof UPCALL_SAME,
    options: { readonly upcall: Upcall },
  ): Promise<void>;
  free(options: { readonly upcall: Upcall }): Promise<void>;
}

/**
 * An upcall in progress, given to the handler. A handler that goes on asynchronously passes it to
 * calls that wait for upcalls to end (or uses `teardown` and `free` here), so that they do not wait
 * for their own caller. In its synchronous part the handler need not.
 */
export class Upcall implements UpcallToken {
  static {
    showAs(this, 'Upcall', ({ evd, moreEvents }) => ({ evd, moreEvents }));
  }

  /** Calls that wait on behalf of this upcall. */
  waits = 0;

  constructor(
    readonly evd: UpcallOwner,
    /** More events wait in the EVD. */
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
 * @returns a promise makes the upcall last until it settles
 */
export type UpcallHandler = (event: DatEvent, upcall: Upcall) => void | PromiseLike<void>;
/** The handler under NOTIFY: it gets no event and dequeues. */
export type NotifyHandler = (event: undefined, upcall: Upcall) => void | PromiseLike<void>;

let current: Upcall | undefined;

/** The upcall whose handler is on the call stack, of whichever EVD. */
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
