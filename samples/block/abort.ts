/** Ending a command early, for little: a small command has one, and seldom needs it. */

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

/** An AbortController without an EventTarget: that costs more than the rest of a small command. */
export class CommandAbort implements Abort, AbortFlag {
  aborted = false;
  reason: Error | undefined = undefined;
  private listeners: Set<() => void> | undefined = undefined;

  get signal(): AbortFlag {
    return this;
  }

  abort(reason = new Error('the command was aborted')): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    const { listeners } = this;
    this.listeners = undefined;
    for (const listener of listeners ?? []) listener();
  }

  throwIfAborted(): void {
    if (this.reason !== undefined) throw this.reason;
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    if (!this.aborted) (this.listeners ??= new Set()).add(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.listeners?.delete(listener);
  }
}
