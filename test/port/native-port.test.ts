import { openNativePort } from '../../providers/softroce/native-port.js';
import { describePacketPort } from './packet-port-suite.js';

describePacketPort('native port', {
  capabilities: { families: ['ipv4', 'ipv6'], silentAddresses: { ipv4: '127.0.0.77' } },
  createPair(family) {
    if (family === 'ipv6') {
      const port = openNativePort({ addresses: ['::1'], udpPort: 47920 });
      return Promise.resolve({ a: port, b: port });
    }
    const a = openNativePort({ addresses: ['127.0.0.21'], udpPort: 47920 });
    const b = openNativePort({ addresses: ['127.0.0.22', '127.0.0.23'], udpPort: 47920 });
    return Promise.resolve({ a, b });
  },
});
