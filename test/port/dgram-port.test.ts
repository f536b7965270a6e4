import { openDgramPort } from '../../providers/softroce/dgram/port.js';
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import { describePacketPort } from 'dapl/testing';
import { loopback, testPort } from '../support/loopback.js';
import { fixture } from '../support/ports/dgram.js';

describePacketPort('dgram port', fixture);

describePacketPort('dgram port to native port', {
  capabilities: ['ipv4', 'groups-ipv4', 'addresses-ipv4'],
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
  capabilities: ['ipv4', 'groups-ipv4', 'addresses-ipv4'],
  async openPair() {
    const a = openNativePort({ addresses: [loopback(0, 27)], udpPort: testPort(13) });
    const b = await openDgramPort({
      addresses: [loopback(0, 28), loopback(0, 29)],
      udpPort: testPort(13),
    });
    return { a, b };
  },
});
