/** Groups that a port cannot join: the error names the group, and the port goes on. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { gidFromIp } from '../../core/spi/index.js';
import { openDgramPort } from '../../providers/softroce/dgram/port.js';
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import type { SocketPort } from '../../providers/softroce/port/port-options.js';
import { loopback, testPort } from '../support/loopback.js';

const UDP_PORT = testPort(43);
const TAKEN = '239.195.5.1';
const FREE = '239.195.5.2';
const ADDRESS = loopback(0, 94);

const PORTS: Readonly<Record<string, () => Promise<SocketPort>>> = {
  native: () => Promise.resolve(openNativePort({ addresses: [ADDRESS], udpPort: UDP_PORT })),
  dgram: () => openDgramPort({ addresses: [ADDRESS], udpPort: UDP_PORT }),
};

for (const [name, open] of Object.entries(PORTS)) {
  describe(`${name} port, groups that it cannot join`, () => {
    let port: SocketPort;
    beforeEach(async () => (port = await open()));
    afterEach(() => port.close());

    it('says that a program has the UDP port of the group for itself', async () => {
      const other = createSocket('udp4');
      await new Promise<void>((bound) => other.bind({ port: UDP_PORT, address: TAKEN }, bound));
      try {
        assert.throws(() => port.joinGroup!(gidFromIp(TAKEN), 0), {
          name: 'SpiError',
          code: 'EADDRINUSE',
          message: `the group ${TAKEN}: a program has UDP port ${UDP_PORT} and shares it with none`,
        });
        port.leaveGroup!(port.joinGroup!(gidFromIp(FREE), 0));
      } finally {
        await new Promise<void>((closed) => other.close(closed));
      }
      port.leaveGroup!(port.joinGroup!(gidFromIp(TAKEN), 0));
    });

    it('joins a group of thousands of memberships that have come and gone', () => {
      const numbers = new Set<number>();
      for (let i = 0; i < 2000; i++) {
        const number = port.joinGroup!(gidFromIp(FREE), 0);
        numbers.add(number);
        port.leaveGroup!(number);
      }
      assert.equal(numbers.size, 2000);
    });

    it('hears no group once it is closed', async () => {
      await port.close();
      assert.throws(() => port.joinGroup!(gidFromIp(FREE), 0));
    });
  });
}
