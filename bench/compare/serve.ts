/** The inner side of a process of the benchmark: takes calls, and answers each. */
import type { Answer } from './end.js';

/** Performs a call. */
type Perform<C> = (request: C) => Promise<unknown>;

/** @param open gets ready for calls; its end, or its failure, is the first answer */
export async function serveCalls<C>(open: () => Promise<Perform<C>>): Promise<void> {
  try {
    const perform = await open();
    process.on('message', (request: C) => {
      perform(request).then(
        (value) => process.connected && answer(value),
        (error: unknown) => answer(undefined, error),
      );
    });
    // The benchmark has gone: so do we, whatever is under way.
    process.on('disconnect', () => process.exit(0));
    answer(undefined);
  } catch (error) {
    answer(undefined, error);
  }
}

function answer(value: unknown, error?: unknown): void {
  const { user, system } = process.cpuUsage();
  const message: Answer = {
    cpuSeconds: (user + system) / 1e6,
    ...(value !== undefined && { value }),
    ...(error !== undefined && { error: error instanceof Error ? error.message : 'no reason' }),
  };
  // Nobody is left to be told when the benchmark has gone meanwhile.
  process.send?.(message, undefined, undefined, () => undefined);
}
