import { openDgramPort } from '../../providers/softroce/dgram/port.js';
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import { describePacketPort } from 'dapl/testing';
import { loopback, testPort } from '../support/loopback.js';

describePacketPort('dgram port', {
  capabilities: ['ipv4', 'ipv6', 'groups-ipv4'],
  async openPair(family) {
    if (family === 'ipv6') {
      const port = await openDgramPort({ addresses: ['::1'], udpPort: testPort(11) });
      return { a: port, b: port };
    }
    const a = await openDgramPort({ addresses: [loopback(0, 21)], udpPort: testPort(11) });
    const b = await openDgramPort({
      addresses: [loopback(0, 22), loopback(0, 23)],
      udpPort: testPort(11),
    });
    return { a, b };
  },
});

describePacketPort('dgram port to native port', {
  capabilities: ['ipv4', 'groups-ipv4'],
  async openPair() {
    const a = await openDgramPort({ addresses: [loopback(0, 24)], udpPort: testPort(12) });
    const b = openNativePort({
      addresses: [loopback(0, 25), loopback(0, 26)],
      udpPort: testPort(12),
    });
    return { a, b };
  },
});

describePacketPort('native port to dgram port', {
  capabilities: ['ipv4', 'groups-ipv4'],
  async openPair() {
    const a = openNativePort({ addresses: [loopback(0, 27)], udpPort: testPort(13) });
    const b = await openDgramPort({
      addresses: [loopback(0, 28), loopback(0, 29)],
      udpPort: testPort(13),
    });
    return { a, b };
  },
});
