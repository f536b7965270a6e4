// Where an end of ours is measured in a guest, and how it is started.
import type { Guest } from '../guest.js';
import { NETDEV_MTU_BYTES, type PathMtu } from '../lab.js';

/** Where softroce is, beside rxe: in a namespace of its own, as rxe has the guest's port 4791. */
const NAMESPACE = 'softroce';

export type Provider = 'verbs' | 'softroce';

/** In the guest itself, or in a network namespace of it. */
export interface Place {
  readonly guest: Guest;
  readonly address: string;
  /** The beginning of its command. */
  readonly prefix?: string;
}

export async function placeOf(guest: Guest, provider: Provider, mtu: PathMtu): Promise<Place> {
  if (provider === 'verbs') return { guest, address: guest.ipv4 };
  const address = guest.ipv4.replace(/\d+$/, (octet) => String(Number(octet) + 100));
  const inside = `ip netns exec ${NAMESPACE}`;
  const made = await guest.run(
    `modprobe macvlan && ip netns add ${NAMESPACE} &&
     ip link add link eth0 name mac0 netns ${NAMESPACE} type macvlan mode bridge &&
     ${inside} ip link set lo up &&
     ${inside} ip link set mac0 mtu ${NETDEV_MTU_BYTES[mtu]} up &&
     ${inside} ip addr add ${address}/24 dev mac0`,
  );
  if (made.code !== 0) throw new Error(`${guest.name}: no namespace for softroce: ${made.stderr}`);
  return { guest, address, prefix: inside };
}
