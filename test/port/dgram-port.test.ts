import { openDgramPort } from '../../providers/softroce/dgram-port.js';
import { openNativePort } from '../../providers/softroce/native-port.js';
import { describePacketPort } from './packet-port-suite.js';

describePacketPort('dgram port', {
  capabilities: { families: ['ipv4', 'ipv6'] },
  async createPair(family) {
    if (family === 'ipv6') {
      const port = await openDgramPort({ addresses: ['::1'], udpPort: 47921 });
      return { a: port, b: port };
    }
    const a = await openDgramPort({ addresses: ['127.0.0.21'], udpPort: 47921 });
    const b = await openDgramPort({ addresses: ['127.0.0.22', '127.0.0.23'], udpPort: 47921 });
    return { a, b };
  },
});

describePacketPort('dgram port to native port', {
  capabilities: { families: ['ipv4'] },
  async createPair() {
    const a = await openDgramPort({ addresses: ['127.0.0.24'], udpPort: 47922 });
    const b = openNativePort({ addresses: ['127.0.0.25', '127.0.0.26'], udpPort: 47922 });
    return { a, b };
  },
});

describePacketPort('native port to dgram port', {
  capabilities: { families: ['ipv4'] },
  async createPair() {
    const a = openNativePort({ addresses: ['127.0.0.27'], udpPort: 47923 });
    const b = await openDgramPort({ addresses: ['127.0.0.28', '127.0.0.29'], udpPort: 47923 });
    return { a, b };
  },
});
