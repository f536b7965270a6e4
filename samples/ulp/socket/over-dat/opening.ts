/** Opens a stream over DAT. */
import type { StreamError } from '../stream-error.js';

/** Exactly one of these is called, once. */
export interface Opening {
  onOpen(): void;
  onFailure(error: StreamError): void;
}

/** A stream that is not open yet. */
export interface YoungStream {
  /** Gives up before it is open: no more events follow. */
  giveUp(): void;
}

/**
 * Resolves when the stream that `begin` makes is open.
 * @throws errors of `begin` and of `onFailure`, and the reason of the signal
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
