/** Aborts commands early: the part of AbortController that commands need, so that less will do. */

/** The part of AbortSignal that commands use; an AbortSignal fits. */
export interface AbortFlag {
  readonly aborted: boolean;
  /** The reason, once it is aborted. */
  readonly reason: Error | undefined;
  /** @throws the reason, once it is aborted */
  throwIfAborted(): void;
  /** Listeners hear of the abort once. */
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** The part of AbortController that commands use; an AbortController fits. */
export interface Abort {
  readonly signal: AbortFlag;
  abort(reason?: Error): void;
}
