/**
 * Memory that is opened to the peer for the duration of one advertisement, with a key of its own.
 */
import { DatError, type Lmr, MemPrivileges } from 'dapl';
import type { Exposed } from '../session/index.js';
import type { Adapter } from './adapter.js';

const { LOCAL_READ, LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE } = MemPrivileges;

const PRIVILEGES = {
  /** The peer reads it. */
  source: LOCAL_READ | REMOTE_READ,
  /** The peer writes it. */
  sink: LOCAL_READ | LOCAL_WRITE | REMOTE_WRITE,
  /** This side writes from it. */
  own: LOCAL_READ,
} as const;

/** @returns undefined if it cannot be registered: part of a pool of Node's, or no resources */
export function register(
  { ia, pz }: Adapter,
  bytes: Uint8Array,
  use: keyof typeof PRIVILEGES,
): Lmr | undefined {
  try {
    return ia.createLmr(bytes, { pz, privileges: PRIVILEGES[use] });
  } catch (error) {
    if (DatError.isDatError(error)) return undefined;
    throw error;
  }
}

export function expose(
  adapter: Adapter,
  bytes: Uint8Array,
  use: 'source' | 'sink',
): Exposed | undefined {
  const lmr = register(adapter, bytes, use);
  if (lmr === undefined) return undefined;
  return {
    address: lmr.address,
    rkey: lmr.rmrContext as number,
    release: () => {
      if (!lmr.isFreed) lmr.free();
    },
  };
}
