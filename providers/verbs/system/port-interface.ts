/** Finds the network interface of an RDMA port. */
import type { GidEntry, RdmaDevice, RdmaPort, SystemSnapshot } from './system.js';

/** Bytes of a hardware address of IP over InfiniBand: flags, QPN, then the GID of the port. */
const IPOIB_ADDRESS_BYTES = 20;

/**
 * RoCE: sysfs says it with the GID. InfiniBand: the interface whose hardware address ends with the
 * GID (RFC 4391, 9.1.1). iWARP: the GID begins with the interface's hardware address.
 */
export function interfaceOf(
  system: SystemSnapshot,
  { entry }: { readonly device: RdmaDevice; readonly port: RdmaPort; readonly entry: GidEntry },
): string | undefined {
  if (entry.netdev !== undefined) return entry.netdev;
  const { gid, type } = entry;
  const found = system.interfaces.find(({ hardwareAddress: bytes }) => {
    if (type === 'IB') {
      return (
        bytes.length === IPOIB_ADDRESS_BYTES && bytes.subarray(4).every((b, i) => b === gid[i])
      );
    }
    return type === 'iWARP' && bytes.length === 6 && bytes.every((b, i) => b === gid[i]);
  });
  return found?.name;
}
