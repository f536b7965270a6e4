/** Opens a stream over DAT. */
import type { StreamError } from '../stream-error.js';

/** Told once, by one or the other. */
export interface Opening {
  onOpen(): void;
  onFailure(error: StreamError): void;
}

/** A stream that is being made. */
export interface YoungStream {
  /** Before it is open: nothing is told any more. */
  giveUp(): void;
}

/**
 * Resolves when the stream that `begin` makes is open.
 * @throws what `begin` throws, what `onFailure` tells, and what the signal fires with
 */
export function opened<S extends YoungStream>(
  signal: AbortSignal | undefined,
  begin: (opening: Opening) => S,
): Promise<S> {
  return new Promise((resolve, reject) => {
    let stream: S;
    const onAbort = (): void => {
      stream.giveUp();
      reject(signal?.reason as Error);
    };
    const settle = (): void => signal?.removeEventListener('abort', onAbort);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      stream = begin({
        onOpen: () => {
          settle();
          resolve(stream);
        },
        onFailure: (error) => {
          settle();
          reject(error);
        },
      });
    } catch (error) {
      settle();
      throw error;
    }
  });
}
