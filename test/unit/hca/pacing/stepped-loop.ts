/** An event loop that is stepped by hand: what Node calls later waits here to be called. */
import type { LoopCalls } from '../../../../providers/host/index.js';

export class SteppedLoop implements LoopCalls {
  readonly microtasks: (() => void)[] = [];
  readonly ticks: (() => void)[] = [];
  immediate: (() => void) | undefined;
  deadlineUs = Infinity;

  microtask(task: () => void): () => void {
    return () => void this.microtasks.push(task);
  }

  lastMicrotask(task: () => void): () => void {
    return this.microtask(() => void this.ticks.push(task));
  }

  turn(task: () => void): ReturnType<LoopCalls['turn']> {
    return {
      request: () => void (this.immediate = task),
      cancel: () => void (this.immediate = undefined),
    };
  }

  timer(): ReturnType<LoopCalls['timer']> {
    return {
      arm: (deadlineUs: number) => void (this.deadlineUs = deadlineUs),
      close: () => undefined,
    };
  }

  /** Whether the task of the program has ended, and all that runs right behind it. */
  get isQuiet(): boolean {
    return this.microtasks.length + this.ticks.length === 0;
  }

  /** What runs next without a turn: all microtasks come before a tick. */
  next(): 'microtask' | 'tick' | undefined {
    if (this.microtasks.length > 0) return 'microtask';
    return this.ticks.length > 0 ? 'tick' : undefined;
  }

  run(step: 'microtask' | 'tick' | 'turn'): void {
    if (step === 'microtask') this.microtasks.shift()!();
    else if (step === 'tick') this.ticks.shift()!();
    else {
      const task = this.immediate!;
      this.immediate = undefined;
      task();
    }
  }
}
