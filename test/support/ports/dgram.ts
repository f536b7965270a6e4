/** Pairs of dgram ports, for the suite of ports and for the processes that it starts. */
import type { PacketPortFixture } from 'dapl/testing';
import { openDgramPort } from '../../../providers/softroce/dgram/port.js';
import { loopback, testPort } from '../loopback.js';

export const fixture: PacketPortFixture = {
  capabilities: ['ipv4', 'ipv6', 'groups-ipv4', 'addresses-ipv4', 'process'],
  async openPair(family) {
    const module = import.meta.url;
    if (family === 'ipv6') {
      const port = await openDgramPort({ addresses: ['::1'], udpPort: testPort(11) });
      return { a: port, b: port, module };
    }
    const a = await openDgramPort({ addresses: [loopback(0, 21)], udpPort: testPort(11) });
    const b = await openDgramPort({
      addresses: [loopback(0, 22), loopback(0, 23)],
      udpPort: testPort(11),
    });
    return { a, b, module };
  },
};
