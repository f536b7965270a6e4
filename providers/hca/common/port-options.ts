/** Options that the packet ports under the software HCA have in common. */
import { kindOf, oneOf, optional } from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/errors/einval.js';
import {
  type Gid,
  gidFromIp,
  ipFromGid,
  isMulticastGid,
  PATH_MTU_BYTES,
  type SpiError,
} from '../../../core/spi/index.js';

const MAX_ADDRESSES = 64;
export const PATH_MTUS = PATH_MTU_BYTES.slice(1);

export const PORT_OPTIONS = {
  addresses: kindOf<readonly (string | Gid)[]>(
    `a list of 1 to ${MAX_ADDRESSES} local IP addresses, such as ['127.0.0.1']`,
    (list) => Array.isArray(list) && list.length >= 1 && list.length <= MAX_ADDRESSES,
  ),
  mtuBytes: optional(oneOf(PATH_MTUS)),
};

/** @throws SpiError('EINVAL') for what cannot be an address of a device, with the reason */
export function gidsOf(addresses: readonly (string | Gid)[]): Gid[] {
  const seen = new Set<string>();
  return addresses.map((address) => {
    const gid = typeof address === 'string' ? gidOf(address) : gidOfBytes(address);
    if (gid === undefined) throw refused(address, 'an IP address, or a GID of 16 bytes');
    const text = ipFromGid(gid);
    const reason = whyNoneOfADevice(gid);
    if (reason !== undefined) throw refused(text, `the address of one interface: ${reason}`);
    if (seen.has(text)) throw refused(text, 'given once');
    seen.add(text);
    return gid;
  });
}

function refused(address: unknown, expected: string): SpiError {
  return einval('one of addresses', address, expected);
}

/** Why packets cannot come from this address. */
function whyNoneOfADevice(gid: Gid): string | undefined {
  if (isMulticastGid(gid)) return 'this one is of a group';
  const text = ipFromGid(gid);
  if (text === '255.255.255.255') return 'this one is of all hosts (broadcast)';
  if (text !== '0.0.0.0' && text !== '::') return undefined;
  return 'this one stands for all of them, and peers are told one';
}

function gidOfBytes(bytes: unknown): Gid | undefined {
  return bytes instanceof Uint8Array && bytes.length === 16 ? Uint8Array.from(bytes) : undefined;
}

function gidOf(address: string): Gid | undefined {
  try {
    return gidFromIp(address);
  } catch {
    return undefined;
  }
}
