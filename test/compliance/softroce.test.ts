import { openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { describeProvider } from 'dapl/testing';
import { hasLongCases } from '../support/lane.js';
import { loopback } from '../support/loopback.js';

const ACTIVE = loopback(2, 1);
const PASSIVE = loopback(2, 2);

const COMMON = [
  'latency',
  'refusal-reasons',
  'service-id',
  'second-adapter',
  'loopback',
  'rdma-read',
  'shared-receive-queue',
  'atomic',
  'send-with-invalidate',
  'xrc',
  'xrc-connections',
  'memory-window',
  'ud',
  'multicast',
] as const;

/** node:dgram hears nothing of ICMP errors on a socket that is not connected. */
const PORTS = {
  native: [...COMMON, 'unreachable', 'file-mapping', 'named-memory'],
  dgram: COMMON,
} as const;

/**
 * Without shared memory every packet is a datagram. The HCA above the port is the same for all: the
 * native port stands for them in the quick lane, and test/port tries each.
 */
const KINDS = [
  { name: 'over the native port', port: 'native', shm: false },
  { name: 'through shared memory', port: 'native', shm: true },
  { name: 'over the dgram port', port: 'dgram', shm: false },
] as const;

for (const { name, port, shm } of hasLongCases ? KINDS : KINDS.slice(0, 1)) {
  describeProvider(`softroce ${name}`, {
    capabilities: PORTS[port],
    async openPair() {
      const provider = (address: string): ReturnType<typeof softroce> =>
        softroce({ addresses: [address], port, shm });
      const active = await openIa(provider(ACTIVE));
      const passive = await openIa(provider(PASSIVE));
      return {
        active,
        passive,
        passiveAddress: PASSIVE,
        unreachableAddress: loopback(2, 99),
        openPassiveAgain: (options) => openIa(provider(PASSIVE), options),
        close: async () => {
          await Promise.all([active.close(), passive.close()]);
        },
      };
    },
  });
}
