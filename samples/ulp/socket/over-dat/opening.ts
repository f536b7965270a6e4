/** Opens a stream over DAT. */
import { StreamError } from '../stream-error.js';
import type { Ia } from 'dapl';

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

/** Opens adapters by address. They stay open as long as they are used. */
export interface AdapterSource {
  /** An adapter with a route to a peer; `own` is the local address, if one is requested. */
  toward(peer: string, own: string | undefined): Promise<Ia>;
  /** An adapter to listen on; without an address the source chooses. */
  on(own: string | undefined): Promise<Ia>;
}

/** A source of one adapter. */
export function sourceOf(over: Ia | AdapterSource): AdapterSource {
  if ('toward' in over) return over;
  const given = (own: string | undefined): Promise<Ia> => {
    const { iaAddress } = over.query().ia;
    if (own === undefined || own === iaAddress) return Promise.resolve(over);
    const detail = `the adapter is on ${iaAddress}`;
    return Promise.reject(
      new StreamError('EADDRNOTAVAIL', { syscall: 'bind', address: own, detail }),
    );
  };
  return { toward: (_, own) => given(own), on: given };
}
