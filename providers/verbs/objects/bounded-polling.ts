/**
 * Polling a completion queue for a while after activity, in place of the device's notification,
 * where completions come faster so: a look costs less than a microsecond, waking a process that
 * sleeps twenty to thirty. After that while the device is armed, so that an idle process sleeps.
 */
import { performance } from 'node:perf_hooks';
import type { PollingMode } from '../../../core/spi/index.js';
import { type Gain, PollGain } from '../../hca/pacing/index.js';

/** Time after the last completion. Several times the cost of a wake-up. */
const BUSY_MS = 0.2;

export interface PolledQueue {
  /** True if there is something to read. */
  hasArrived(): boolean;
  /** Lets the device notify; false when it cannot. */
  arm(): boolean;
  notify(): void;
}

export class BoundedPolling {
  private isAdaptive = false;
  /** The consumer waits for a notification, and no device has been asked for it. */
  private isWaiting = false;
  private busyUntilMs = 0;
  private immediate: NodeJS.Immediate | undefined;

  constructor(
    private readonly queue: PolledQueue,
    private readonly gain: Gain = new PollGain(),
  ) {}

  setMode(mode: PollingMode): void {
    this.isAdaptive = mode === 'adaptive';
    if (!this.isAdaptive && this.isWaiting) this.handOver();
  }

  /** A completion has come. */
  active(): void {
    if (!this.isAdaptive) return;
    const nowMs = performance.now();
    this.gain.onCompletions(1, nowMs * 1000);
    this.busyUntilMs = nowMs + BUSY_MS;
  }

  /** True when this looks after the next notification; else the device must be armed. */
  takesOver(): boolean {
    if (!this.isAdaptive || !this.gain.pays || performance.now() >= this.busyUntilMs) return false;
    this.isWaiting = true;
    this.immediate ??= setImmediate(() => this.look());
    return true;
  }

  stop(): void {
    this.isWaiting = false;
    if (this.immediate) clearImmediate(this.immediate);
    this.immediate = undefined;
  }

  private look(): void {
    this.immediate = undefined;
    if (!this.isWaiting) return;
    if (this.queue.hasArrived()) this.notify();
    else if (performance.now() < this.busyUntilMs) this.immediate = setImmediate(() => this.look());
    else this.handOver();
  }

  /** Polls once more: events from before the device was armed do not fire it. */
  private handOver(): void {
    this.stop();
    if (!this.queue.arm() || this.queue.hasArrived()) this.notify();
  }

  private notify(): void {
    this.stop();
    this.active();
    this.queue.notify();
  }
}
