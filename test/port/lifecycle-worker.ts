/** A worker thread with a native port: answers each packet with one that has the next PSN. */
import { parentPort } from 'node:worker_threads';
import { gidFromIp } from '../../core/spi/index.js';
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import {
  describePackets,
  header,
  psnOf,
  takeReceived,
} from '../../plugins/testing/port/harness.js';
import { loopback, testPort } from '../support/loopback.js';

const port = openNativePort({ addresses: [loopback(0, 52)], udpPort: testPort(31) });
const path = port.addPath(gidFromIp(loopback(0, 53)), 0);
port.watch({
  onReadable() {
    for (const received of takeReceived(port)) {
      describePackets(port, [{ path, header: header(psnOf(received) + 1) }]);
      port.send(0, 1);
    }
  },
  onWritable() {},
  onReport() {},
});
port.setProcessHold(true);
parentPort?.on('message', () => {
  void port.close().then(() => parentPort?.close());
});
parentPort?.postMessage('open');
