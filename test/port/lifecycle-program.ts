/**
 * A program of its own for the tests of lifecycle.test.ts: opens a native port and does as told.
 *
 *   lifecycle-program.js close|idle|alive
 */
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import { loopback, testPort } from '../support/loopback.js';

const [, , mode] = process.argv;
const port = openNativePort({ addresses: [loopback(0, 51)], udpPort: testPort(30) });
port.watch({ onReadable() {}, onWritable() {}, onReport() {} });
port.setProcessHold(mode !== 'idle');
if (mode === 'close') setTimeout(() => void port.close(), 20);
process.stdout.write('open\n');
