/**
 * Runs tasks when the process, or the worker thread, exits. They run synchronously, since nothing
 * awaited completes then. One listener of the process serves all devices: Node warns of more than
 * ten.
 */

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
