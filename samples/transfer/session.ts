/** Opens and closes the interface adapter of one transfer. */
import { type Ia, openIa } from 'dapl';
import { providerAt, type ProviderName } from '../command-options.js';
import { failureOf, TransferFailure } from './failure.js';

/**
 * The socket implementation of softroce: its native addon, Node's sockets, or the best available.
 */
export const SOCKET_KINDS = ['auto', 'native', 'dgram'] as const;
export type SocketKind = (typeof SOCKET_KINDS)[number];

/** Default port (connection qualifier) of the receiver. */
export const DEFAULT_PORT = 7471;

/**
 * Opens an adapter on `address`, does the work, and closes the adapter in any case. @throws
 * TransferFailure if the address or its UDP port cannot be used
 */
export async function withIa<T>(
  address: string,
  { socket, provider }: { readonly socket: SocketKind; readonly provider: ProviderName },
  work: (ia: Ia) => Promise<T>,
): Promise<T> {
  let ia: Ia;
  try {
    ia = await openIa(providerAt(provider, address, socket));
  } catch (cause) {
    throw new TransferFailure(`No RDMA on ${address}: ${failureOf(cause).what}`, { cause });
  }
  try {
    return await work(ia);
  } finally {
    await ia.close('abrupt');
  }
}
