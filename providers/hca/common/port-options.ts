/** Options that the packet ports under the software HCA have in common. */
import { kindOf, oneOf, optional } from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/einval.js';
import { type Gid, gidFromIp, PATH_MTU_BYTES } from '../../../core/spi/index.js';

const MAX_ADDRESSES = 64;
export const PATH_MTUS = PATH_MTU_BYTES.slice(1);

export const PORT_OPTIONS = {
  addresses: kindOf<readonly (string | Gid)[]>(
    `a list of 1 to ${MAX_ADDRESSES} local IP addresses, such as ['127.0.0.1']`,
    (list) => Array.isArray(list) && list.length >= 1 && list.length <= MAX_ADDRESSES,
  ),
  mtuBytes: optional(oneOf(PATH_MTUS)),
};

/** @throws SpiError('EINVAL') for what is neither the text of an IP address nor a GID */
export function gidsOf(addresses: readonly (string | Gid)[]): Gid[] {
  return addresses.map((address) => {
    const gid = typeof address === 'string' ? gidOf(address) : Uint8Array.from(address);
    if (gid?.length === 16) return gid;
    throw einval('one of addresses', address, 'an IP address, or a GID of 16 bytes');
  });
}

function gidOf(address: string): Gid | undefined {
  try {
    return gidFromIp(address);
  } catch {
    return undefined;
  }
}
