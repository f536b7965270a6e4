/** Objects of an adapter that are made together. */
import { leaveUnhandled } from 'dapl/spi';

type Made = Disposable | { [Symbol.asyncDispose](): Promise<void> };

/**
 * Makes several objects. Those that were kept are freed, the last one first, if one of them cannot
 * be made. @throws what `make` throws
 */
export function allOrNone<T>(make: (keep: <R extends Made>(made: R) => R) => T): T {
  const kept: Made[] = [];
  try {
    return make((made) => {
      kept.push(made);
      return made;
    });
  } catch (error) {
    for (const made of kept.reverse()) {
      if (Symbol.dispose in made) made[Symbol.dispose]();
      else leaveUnhandled(made[Symbol.asyncDispose]());
    }
    throw error;
  }
}
