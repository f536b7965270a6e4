/** What a program under test leaves unhandled, in place of the end of the process. */

/** The errors that nothing has handled a few turns of the event loop after `scene`. */
export async function unhandledErrors(scene: () => void | Promise<void>): Promise<unknown[]> {
  const errors: unknown[] = [];
  const event = 'unhandledRejection';
  const others = process.listeners(event);
  const listener = (reason: unknown): void => void errors.push(reason);
  process.removeAllListeners(event);
  process.on(event, listener);
  try {
    await scene();
    for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off(event, listener);
    for (const other of others) process.on(event, other);
  }
  return errors;
}
