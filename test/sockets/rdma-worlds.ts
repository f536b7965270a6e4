/** Worlds of protocols over RDMA: on the simulated fabric, and on softroce. */
import { type Ia, openIa } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';
import { softroce } from 'dapl/providers/softroce';
import type { ByteStreamProtocol } from '../../samples/ulp/socket/index.js';
import { loopback } from '../support/loopback.js';
import type { OpenWorld, SocketWorld } from './world.js';

type Over = (ia: Ia) => ByteStreamProtocol;

function worldOf(over: Over, here: Ia, there: Ia): SocketWorld {
  return {
    client: over(here),
    server: over(there),
    address: there.address,
    close: async () => void (await Promise.all([here.close(), there.close()])),
  };
}

async function simulated(over: Over, client: string, server: string): Promise<SocketWorld> {
  const fabric = new Fabric({ seed: 1, autoRun: true });
  const here = await openIa(mock({ fabric, address: client }));
  return worldOf(over, here, await openIa(mock({ fabric, address: server })));
}

/** @param network third number of the addresses of softroce */
export function worldsOf(
  over: Over,
  network: number,
): Record<'mock' | 'mockIpv6' | 'softroce', OpenWorld> {
  return {
    mock: () => simulated(over, '192.0.2.2', '192.0.2.1'),
    mockIpv6: () => simulated(over, '2001:db8::2', '2001:db8::1'),
    softroce: async () => {
      const here = await openIa(softroce({ addresses: [loopback(network, 2)], shm: false }));
      const there = await openIa(softroce({ addresses: [loopback(network, 1)], shm: false }));
      return worldOf(over, here, there);
    },
  };
}
