/** What goes through shared memory and what goes over UDP, in one burst. */
import assert from 'node:assert/strict';
import { CHANNEL_MTU_BYTES, gidFromIp } from '../../core/spi/index.js';
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import { joinPorts } from '../support/joined-ports.js';
import { loopback, testPort } from '../support/loopback.js';
import { gidOf, nothing } from '../../plugins/testing/port/bench-pair.js';
import { header, psnOf, sendAll, takeReceived, until } from '../../plugins/testing/port/harness.js';

const UDP_PORT = testPort(44);

describe('a port with packets in a channel and on its socket', () => {
  it('takes in with a datagram what was put into the channel before it', async () => {
    const a = openNativePort({ addresses: [loopback(0, 39)], udpPort: UDP_PORT });
    const b = openNativePort({ addresses: [loopback(0, 40)], udpPort: UDP_PORT });
    try {
      a.watch(nothing);
      b.watch(nothing);
      joinPorts(a, b, UDP_PORT);
      const near = a.addPath(gidOf(b), 0, CHANNEL_MTU_BYTES);
      const far = a.addPath(gidFromIp(loopback(0, 40)), 0);
      for (let round = 0; round < 50; round++) {
        await sendAll(a, [
          { path: near, header: header(2 * round) },
          { path: far, header: header(2 * round + 1) },
        ]);
        let psns: number[] = [];
        // A look that finds the datagram finds the other one, too, or has found it before.
        await until(() => {
          const came = takeReceived(b).map(psnOf);
          const datagram = came.includes(2 * round + 1);
          psns = [...psns, ...came];
          assert.ok(!datagram || psns.includes(2 * round));
          return datagram;
        }, 'the datagram');
        assert.deepEqual([...psns].sort(), [2 * round, 2 * round + 1].sort());
      }
    } finally {
      await Promise.all([a.close(), b.close()]);
    }
  });
});
