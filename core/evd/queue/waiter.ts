/** One pending `wait`: the ways it ends, and its resources until then. */
import { DatError } from '../../errors/index.js';
import { type Clock, Timer, type Timers } from '../../spi/index.js';

export interface WaiterInit {
  /** Events that must be queued. */
  readonly threshold: number;
  /**
   * Enough events are queued: takes them and settles; false if there were none after all.
   */
  readonly satisfy: () => boolean;
  readonly reject: (error: DatError) => void;
  /** The EVD has been freed. */
  readonly onFree: () => void;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
}

/** A pending call on an EVD: a call of `wait`, or an iteration. One at a time. */
export interface Waiting {
  /** Events that must be queued for it to be served. */
  readonly threshold: number;
  /** Takes its events and settles; false if there were none after all: it keeps waiting. */
  satisfy(): boolean;
  reject(error: DatError): void;
  /** The EVD has been freed. */
  freed(): void;
}

export class Waiter implements Waiting {
  readonly threshold: number;
  private readonly timer: Timer | undefined;

  /**
   * @param onTimeout the time is up; the EVD looks once more and decides
   * @param onAbort the signal has fired
   */
  constructor(
    private readonly init: WaiterInit,
    private readonly timers: Timers,
    clock: Clock,
    onTimeout: () => void,
    private readonly onAbort: () => void,
  ) {
    this.threshold = init.threshold;
    init.signal?.addEventListener('abort', onAbort, { once: true });
    if (init.timeoutMs !== undefined && init.timeoutMs !== Infinity) {
      this.timer = new Timer(onTimeout);
      timers.start(this.timer, clock.now() + init.timeoutMs * 1000);
    }
  }

  satisfy(): boolean {
    if (!this.init.satisfy()) return false;
    this.release();
    return true;
  }

  reject(error: DatError): void {
    this.release();
    this.init.reject(error);
  }

  freed(): void {
    this.release();
    this.init.onFree();
  }

  private release(): void {
    this.init.signal?.removeEventListener('abort', this.onAbort);
    if (this.timer !== undefined) this.timers.stop(this.timer);
  }
}

export function timeoutError(timeoutMs: number, nmore: number, threshold: number): DatError {
  return new DatError('DAT_TIMEOUT_EXPIRED', {
    operation: 'evd.wait',
    message: `${nmore} of ${threshold} events after ${timeoutMs} ms`,
    value: { timeoutMs, nmore },
  });
}

export function interruptedError(operation: string, signal: AbortSignal): DatError {
  return new DatError('DAT_INTERRUPTED_CALL', {
    subtype: 'DAT_SUB_INTERRUPTED',
    operation,
    message: 'its AbortSignal was aborted',
    cause: signal.reason,
  });
}
