import assert from 'node:assert/strict';
import { gidFromIp } from '../../core/spi/index.js';
import { openDgramPort } from '../../providers/softroce/dgram/port.js';
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import { describeHostileDatagrams, describeHostileGroupDatagrams } from './hostile-datagrams.js';
import { header, psnOf, receiveSome, until } from '../../plugins/testing/port/harness.js';
import { Stranger } from './stranger.js';
import { loopback, testPort } from '../support/loopback.js';

describeHostileDatagrams('native port', testPort(20), (address, udpPort) =>
  // With a limit there are no longer packets between two of ours either.
  Promise.resolve(openNativePort({ addresses: [address], udpPort, mtuBytes: 4096 })),
);
describeHostileDatagrams('dgram port', testPort(21), (address, udpPort) =>
  openDgramPort({ addresses: [address], udpPort }),
);

describeHostileGroupDatagrams('native port', testPort(41), (address, udpPort) =>
  Promise.resolve(openNativePort({ addresses: [address], udpPort, mtuBytes: 4096 })),
);
describeHostileGroupDatagrams('dgram port', testPort(42), (address, udpPort) =>
  openDgramPort({ addresses: [address], udpPort }),
);

describe('native port, identification window', () => {
  it('holds a peer to its way of numbering, until it is plainly another one', async () => {
    const port = openNativePort({ addresses: [loopback(0, 43)], udpPort: testPort(22) });
    const stranger = await Stranger.bind(loopback(0, 44), gidFromIp(loopback(0, 43)), testPort(22));
    try {
      for (let psn = 0; psn < 20; psn++) await stranger.send(stranger.seal(header(psn)));
      assert.equal((await receiveSome(port, 20)).length, 20);
      assert.equal(port.counters.recoveredId, 0);

      // What damage could look like: one packet in 2^16 fits an identification by chance.
      await stranger.send(stranger.seal(header(20), 0x4321));
      await until(() => port.receive() === 0 && port.counters.badIcrc === 1, 'the drop');

      // A kernel in the peer's place counts on from there.
      await stranger.send(stranger.seal(header(21), 0x4322));
      await stranger.send(stranger.seal(header(22), 0x4323));
      assert.deepEqual((await receiveSome(port, 2)).map(psnOf), [21, 22]);
      assert.equal(port.counters.recoveredId, 1); // the other one was expected
      assert.equal(port.counters.badIcrc, 1);
    } finally {
      stranger.close();
      await port.close();
    }
  });
});
