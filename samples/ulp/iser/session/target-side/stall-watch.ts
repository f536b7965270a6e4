/**
 * Detects a peer that stalls the transfers that it has requested. Such a session holds memory,
 * although the peer may still answer pings. Linux's target allows 3 s (`dataout_timeout`).
 */
import type { SetAlarm } from './keep-alive.js';

export interface StallWatchParts {
  readonly alarm: SetAlarm;
  /** Milliseconds without progress, up to half as many more, after which a transfer has stalled. */
  readonly timeoutMs: number;
  /** True if the peer has something to do. */
  readonly isPending: () => boolean;
  readonly stalled: () => void;
}

/**
 * Periods to wait: one that ends late, because this process was busy, is followed by a whole one.
 */
const PERIODS = 2;

export class StallWatch {
  private hasMoved = false;
  private quietPeriods = 0;
  private cancel: (() => void) | undefined = undefined;

  constructor(private readonly parts: StallWatchParts) {}

  /** The peer gets its first pending work. */
  begin(): void {
    if (!this.parts.isPending()) this.hasMoved = true;
    if (this.cancel === undefined) this.arm();
  }

  /** The peer has made progress. */
  moved(): void {
    this.hasMoved = true;
  }

  stop(): void {
    this.cancel?.();
    this.cancel = undefined;
  }

  private arm(): void {
    const { alarm, timeoutMs } = this.parts;
    this.cancel = alarm(timeoutMs / PERIODS, () => this.look());
  }

  private look(): void {
    this.cancel = undefined;
    if (!this.parts.isPending()) return;
    this.quietPeriods = this.hasMoved ? 0 : this.quietPeriods + 1;
    this.hasMoved = false;
    if (this.quietPeriods >= PERIODS) this.parts.stalled();
    else this.arm();
  }
}
