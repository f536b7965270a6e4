/** Pairs of native ports, for the suite of ports and for the processes that it starts. */
import type { PacketPortFixture } from 'dapl/testing';
import { openNativePort } from '../../../providers/softroce/port/native-port.js';
import { loopback, testPort } from '../loopback.js';

export const fixture: PacketPortFixture = {
  capabilities: ['ipv4', 'ipv6', 'unreachable-ipv4', 'groups-ipv4', 'addresses-ipv4', 'process'],
  openPair(family) {
    const module = import.meta.url;
    if (family === 'ipv6') {
      const port = openNativePort({ addresses: ['::1'], udpPort: testPort(10) });
      return Promise.resolve({ a: port, b: port, module });
    }
    const a = openNativePort({ addresses: [loopback(0, 21)], udpPort: testPort(10) });
    const b = openNativePort({
      addresses: [loopback(0, 22), loopback(0, 23)],
      udpPort: testPort(10),
    });
    return Promise.resolve({ a, b, module, silentAddress: loopback(0, 77) });
  },
};
