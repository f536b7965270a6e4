/**
 * Ordered teardown. Steps run one after another; failures are collected and stop nothing; one
 * deadline bounds the whole. A step that exceeds it is left behind, and later steps are started
 * without waiting for them.
 */
import { DatError } from '../errors/index.js';
import { type Clock, Timer, type Timers } from '../spi/index.js';

export interface TeardownStep {
  readonly name: string;
  run(): void | Promise<void>;
}

export interface TeardownLimits {
  readonly operation: string;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly deadlineMs: number;
}

/**
 * @throws DatError DAT_INTERNAL_ERROR whose cause is an AggregateError with the failure of each
 * step
 */
export async function tearDown(
  steps: readonly TeardownStep[],
  limits: TeardownLimits,
): Promise<void> {
  const failures: Error[] = [];
  const deadline = new Deadline(limits);
  for (const step of steps) {
    try {
      await deadline.bound(step);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      failures.push(new Error(`${step.name}: ${message}`, { cause: error }));
    }
  }
  deadline.stop();
  if (failures.length === 0) return;
  const list = failures.map((failure) => failure.message).join('; ');
  throw new DatError('DAT_INTERNAL_ERROR', {
    operation: limits.operation,
    message: `${failures.length} of ${steps.length} steps failed: ${list}`,
    value: failures.length,
    cause: new AggregateError(failures, 'teardown failed'),
  });
}

class Deadline {
  private readonly timer = new Timer(() => this.expire());
  private expired = false;
  private reject: ((error: Error) => void) | undefined = undefined;

  constructor(private readonly limits: TeardownLimits) {
    limits.timers.start(this.timer, limits.clock.now() + limits.deadlineMs * 1000);
  }

  async bound(step: TeardownStep): Promise<void> {
    const running = step.run();
    if (running === undefined) return;
    // A step that was left behind may still fail: that must not be an unhandled rejection.
    running.catch(() => undefined);
    if (this.expired) throw this.lateness();
    const expiry = new Promise<never>((_, reject) => {
      this.reject = reject;
    });
    try {
      await Promise.race([running, expiry]);
    } finally {
      this.reject = undefined;
    }
  }

  stop(): void {
    this.limits.timers.stop(this.timer);
  }

  private expire(): void {
    this.expired = true;
    this.reject?.(this.lateness());
  }

  private lateness(): Error {
    return new Error(`not done within ${this.limits.deadlineMs} ms`);
  }
}
