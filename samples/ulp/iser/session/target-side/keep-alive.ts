/** Detects a dead initiator: sends a NOP-In to a silent one (RFC 7143, 11.19). */

/** Calls `run` after so many milliseconds. @returns a function that cancels it */
export type SetAlarm = (ms: number, run: () => void) => () => void;

export interface KeepAliveParts {
  readonly alarm: SetAlarm;
  /** Silence after which the initiator is probed; 0 for never. */
  readonly intervalMs: number;
  /** Further silence after which it is considered dead. */
  readonly timeoutMs: number;
  readonly ask: () => void;
  readonly gone: () => void;
}

export class KeepAlive {
  private cancel: (() => void) | undefined = undefined;
  private hasHeard = false;

  constructor(private readonly parts: KeepAliveParts) {}

  start(): void {
    const { alarm, intervalMs } = this.parts;
    if (intervalMs === 0) return;
    this.hasHeard = false;
    this.cancel = alarm(intervalMs, () => this.onSilence());
  }

  /** A PDU was received. */
  heard(): void {
    this.hasHeard = true;
  }

  stop(): void {
    this.cancel?.();
    this.cancel = undefined;
  }

  private onSilence(): void {
    if (this.hasHeard) return this.start();
    const { alarm, timeoutMs, ask, gone } = this.parts;
    this.cancel = alarm(timeoutMs, () => {
      if (this.hasHeard) this.start();
      else gone();
    });
    ask();
  }
}
