/** Opens and shares the adapters of a byte-stream protocol. */
import type { Ia } from 'dapl';
import { StreamError } from '../stream-error.js';

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
