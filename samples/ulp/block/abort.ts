/** Ending a command early: as much of AbortController as commands need, so that less will do. */

/** What commands ask of an AbortSignal, which is one. */
export interface AbortFlag {
  readonly aborted: boolean;
  /** What was given as the reason, once it is aborted. */
  readonly reason: Error | undefined;
  /** @throws the reason, once it is aborted */
  throwIfAborted(): void;
  /** Listeners hear of the abort once. */
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** What commands ask of an AbortController, which is one. */
export interface Abort {
  readonly signal: AbortFlag;
  abort(reason?: Error): void;
}
