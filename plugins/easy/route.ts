/** The addresses of this machine to connect from, or to listen on. */
import { localAddressToward } from 'dapl';

export interface Route {
  /** The local addresses to open an adapter on: the first that no other program uses is taken. */
  readonly own: readonly string[];
  /** True if an adapter on that address may be used. */
  readonly suits: (address: string) => boolean;
}

/** Number of loopback addresses to try, if other programs use the first ones. */
const TRIES = 8;
/** Values of each of the last two numbers of a loopback address; 0, 1 and 255 are not used. */
const HOSTS = 253;
const STEP = 7919;

/** One address, and no other. */
export function routeOn(address: string): Route {
  return { own: [address], suits: (other) => other === address };
}

/**
 * The route to a peer, by the routing table. On loopback (127.0.0.0/8) every address reaches the
 * peer, and the peer's address is in use: another one is chosen.
 * @param isOurs true if an adapter of this process is on that address
 * @throws DatError DAT_INVALID_ADDRESS if there is no route
 */
export async function routeToward(
  peer: string,
  isOurs: (address: string) => Promise<boolean>,
): Promise<Route> {
  if (!isLoopback(peer)) return routeOn(await localAddressToward(peer));
  if (await isOurs(peer)) return routeOn(peer);
  return {
    own: loopbackAddresses(peer, process.pid),
    suits: (address) => isLoopback(address) && address !== peer,
  };
}

/** Addresses in the same 127.x.0.0/16 as the peer. Each process begins with a different one. */
function loopbackAddresses(peer: string, seed: number): string[] {
  const network = peer.split('.').slice(0, 2).join('.');
  return Array.from({ length: TRIES }, (_, n) => {
    const host = (seed + n * STEP) % (HOSTS * HOSTS);
    return `${network}.${2 + Math.floor(host / HOSTS)}.${2 + (host % HOSTS)}`;
  }).filter((address) => address !== peer);
}

function isLoopback(address: string): boolean {
  return /^127\.\d+\.\d+\.\d+$/.test(address);
}
