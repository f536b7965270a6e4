/** The process of a device: what keeps it alive, and what runs at its exit. */
import type { ProcessHold } from '../../core/spi/index.js';

// Tasks at the exit of the process or the worker thread. They run synchronously, since nothing
// awaited completes then. One listener of the process serves all devices: Node warns of more than
// ten.

const tasks = new Set<() => void>();

function runAll(): void {
  for (const task of tasks) {
    try {
      task();
    } catch {
      // The exit goes on, and what the others have to do is not its business.
    }
  }
}

/**
 * Runs the task on the event 'exit' of `process`: at its natural end, on `process.exit()` and on an
 * uncaught exception. A signal whose default action ends the process gives no such event.
 * @returns takes the task back
 */
export function onExit(task: () => void): () => void {
  if (tasks.size === 0) process.on('exit', runAll);
  tasks.add(task);
  return () => {
    if (tasks.delete(task) && tasks.size === 0) process.off('exit', runAll);
  };
}

/** Counts reasons to keep the process alive and switches the handles that do it. */
export class ProcessHoldCounter implements ProcessHold {
  private reasons = 0;

  /** @param onChange told true when the first reason comes, false when the last one goes */
  constructor(private readonly onChange: (alive: boolean) => void) {}

  retain(): void {
    if (this.reasons++ === 0) this.onChange(true);
  }

  /** @throws RangeError when nothing was retained: a release too many would hide a live one */
  release(): void {
    if (this.reasons === 0) throw new RangeError('released more often than retained');
    if (--this.reasons === 0) this.onChange(false);
  }
}
