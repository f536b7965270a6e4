import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { gidFromIp } from '../../core/spi/index.js';
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import { describePacketPort } from 'dapl/testing';
import { loopback, testPort } from '../support/loopback.js';
import { fixture } from '../support/ports/native.js';

describePacketPort('native port', fixture);

describe('what a native port keeps for the end of the process', () => {
  it('is a packet to a path that there is, short but for zeros, until it is dropped', async () => {
    const port = openNativePort({ addresses: [loopback(0, 24)], udpPort: testPort(10) });
    const keep = (path: number, packet: Uint8Array): number =>
      port.keepExitPacket?.(path, packet) ?? -1;
    const short = new Uint8Array(276).fill(1, 0, 72);
    const path = port.addPath(gidFromIp(loopback(0, 25)), 0);
    try {
      const numbers = Array.from({ length: 200 }, () => keep(path, short));
      assert.equal(new Set(numbers).size, 200);
      for (const number of numbers) port.dropExitPacket?.(number);
      for (const number of [...numbers, 1e6]) port.dropExitPacket?.(number);
      assert.ok(numbers.includes(keep(path, short)), 'numbers are used again');
      assert.throws(() => keep(path + 1, short), RangeError);
      assert.throws(() => keep(path, short.fill(1, 72, 73)), RangeError);
      assert.throws(() => keep(path, new Uint8Array(516)), RangeError);
      assert.throws(() => keep(path, new Uint8Array(11)), RangeError);
    } finally {
      await port.close();
    }
    assert.throws(() => keep(path, short), RangeError);
    port.dropExitPacket?.(0);
  });
});

describe('a native port that rests', () => {
  it('sleeps for so long at most, not at all beside a packet, nor when it is closed', async () => {
    const addresses = [loopback(0, 26)];
    const port = openNativePort({ addresses, udpPort: testPort(10) });
    const other = createSocket('udp4');
    port.rest!(1000);
    await new Promise((sent) => other.send('x', testPort(10), addresses[0], sent));
    // It would outlast the test by far.
    port.rest!(2_000_000_000);
    other.close();
    await port.close();
    port.rest!(2_000_000_000);
  });
});
