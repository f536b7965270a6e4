/** One deadline for a call of several steps, some of which take no timeout. */
import { FlowError, type WaitOptions } from 'dapl/flow';
import { LONGEST_TIMER_MS } from './options.js';

export class Deadline {
  private readonly endsAtMs: number;

  /**
   * @param limits checked
   * @param soFar the progress, for the error of a timeout or abort
   */
  constructor(
    readonly operation: string,
    private readonly limits: WaitOptions,
    private readonly soFar = 'no adapter is open yet',
  ) {
    this.endsAtMs = performance.now() + (limits.timeoutMs ?? Infinity);
  }

  /** The remaining time, for a step that takes limits itself. */
  get left(): WaitOptions {
    const { signal } = this.limits;
    const timeoutMs = Math.max(0, this.endsAtMs - performance.now());
    return signal === undefined ? { timeoutMs } : { timeoutMs, signal };
  }

  /**
   * The result of a step that is done in time.
   * @param undo is called with a result that comes too late
   * @throws FlowError DAT_TIMEOUT_EXPIRED, DAT_INTERRUPTED_CALL; whatever the step throws
   */
  async during<T>(step: Promise<T>, undo: (late: T) => void): Promise<T> {
    const { timeoutMs, signal } = this.left;
    if (timeoutMs === Infinity && signal === undefined) return step;
    let stop = (): void => undefined;
    const limit = new Promise<never>((_, reject) => {
      const onAbort = (): void => reject(this.interrupted(signal?.reason));
      if (signal?.aborted === true) onAbort();
      signal?.addEventListener('abort', onAbort, { once: true });
      const timer =
        timeoutMs === undefined || timeoutMs > LONGEST_TIMER_MS
          ? undefined
          : setTimeout(() => reject(this.timedOut()), timeoutMs);
      stop = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
      };
    });
    try {
      return await Promise.race([step, limit]);
    } catch (error) {
      step.then(undo, () => undefined);
      throw error;
    } finally {
      stop();
    }
  }

  /** The error of a step that had what was `left`: it names the time of the whole call. */
  restated(error: unknown): unknown {
    if (!FlowError.isFlowError(error) || error.code !== 'DAT_TIMEOUT_EXPIRED') return error;
    return this.timedOut('', error.flightRecord);
  }

  private timedOut(why = `: ${this.soFar}`, flightRecord: readonly string[] = []): FlowError {
    const { timeoutMs: value } = this.limits;
    const { operation } = this;
    const message = `not done within ${value} ms${why}`;
    return new FlowError('DAT_TIMEOUT_EXPIRED', { operation, message, value, flightRecord });
  }

  private interrupted(cause: unknown): FlowError {
    const message = `its AbortSignal was aborted: ${this.soFar}`;
    return new FlowError('DAT_INTERRUPTED_CALL', { operation: this.operation, message, cause });
  }
}
