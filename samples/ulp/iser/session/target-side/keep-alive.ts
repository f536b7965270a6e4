/** Detects a dead initiator: sends a NOP-In to a silent one (RFC 7143, 11.19). */

/** Calls `run` after so many milliseconds, unless the function that it returns is called before. */
export type SetAlarm = (ms: number, run: () => void) => () => void;

export interface KeepAliveParts {
  readonly alarm: SetAlarm;
  /** Silence after which the initiator is asked; 0 never asks. */
  readonly intervalMs: number;
  /** Silence after that until it counts as gone. */
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

  /** Something has come. */
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
