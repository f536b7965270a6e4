/** A port that does everything through another one is as good as that one. */
import assert from 'node:assert/strict';
import { ForwardingPort, type PacketPort, silentLogger } from '../../core/spi/index.js';
import { Fabric } from '../../providers/mock/fabric.js';
import { openSocketPort } from '../../providers/softroce/socket-port.js';
import { loopback, testPort } from '../support/loopback.js';
import { fixture as memory } from '../support/ports/memory.js';
import { describePacketPort } from 'dapl/testing';

describePacketPort('a port over the memory port', {
  // A process that opens a pair would open the memory port itself.
  capabilities: memory.capabilities.filter((capability) => capability !== 'process'),
  async openPair(family) {
    const { a, b, ...pair } = await memory.openPair(family);
    return { ...pair, a: new ForwardingPort(a), b: new ForwardingPort(b) };
  },
});

describe('a port over another one', () => {
  const OPTIONAL = [
    'localMtuBytes',
    'clockUs',
    'readClock',
    'joinGroup',
    'leaveGroup',
    'keepExitPacket',
    'dropExitPacket',
  ] as const;

  it('can what that one can, and no more', async () => {
    const options = { udpPort: testPort(9), logger: silentLogger };
    const ports: PacketPort[] = [new Fabric().openPort({ addresses: ['10.0.0.1'] })];
    for (const port of ['auto', 'dgram'] as const) {
      ports.push(
        await openSocketPort({ ...options, addresses: [loopback(2, 60 + ports.length)], port }),
      );
    }
    for (const port of ports) {
      const over: PacketPort = new ForwardingPort(port);
      const has = (which: PacketPort): string[] =>
        OPTIONAL.filter((name) => which[name] !== undefined);
      assert.deepEqual(has(over), has(port));
      over.readClock?.();
      assert.equal(over.clockUs?.[0], port.clockUs?.[0]);
      await over.close();
    }
  });
});
