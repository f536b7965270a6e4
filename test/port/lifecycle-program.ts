/**
 * A program of its own for the tests of lifecycle.test.ts: opens a native port and does as told.
 *
 *   lifecycle-program.js <udpPort> close|idle|alive
 */
import { openNativePort } from '../../providers/softroce/native-port.js';

const [, , udpPort, mode] = process.argv;
const port = openNativePort({ addresses: ['127.0.0.51'], udpPort: Number(udpPort) });
port.watch({ onReadable() {}, onWritable() {}, onReport() {} });
port.setProcessHold(mode !== 'idle');
if (mode === 'close') setTimeout(() => void port.close(), 20);
process.stdout.write('open\n');
