/**
 * Aborts a task: an AbortController without an EventTarget, which costs more than the rest of a
 * small command and is seldom needed.
 */

/** The part of AbortSignal that is used; an AbortSignal fits. */
export interface TaskSignal {
  readonly aborted: boolean;
  /** The reason, once it is aborted. */
  readonly reason: Error | undefined;
  /** @throws the reason, once it is aborted */
  throwIfAborted(): void;
  /** Listeners hear of the abort once. */
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

export class CommandAbort implements TaskSignal {
  aborted = false;
  reason: Error | undefined = undefined;
  private listeners: Set<() => void> | undefined = undefined;

  get signal(): TaskSignal {
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
