// A provider of a packet port: what the port has beside its contract reaches the consumer.
import assert from 'node:assert/strict';
import { openIa } from 'dapl';
import { hcaProvider } from 'dapl/provider-kit';
import { Fabric } from 'dapl/providers/mock';
import type { PacketPort } from 'dapl/spi';
import { over } from 'dapl/spi/decorators';

const ADDRESS = '192.0.2.1';

/** A port of the mock that keeps memory of its own, and counts what it has given out. */
function keepingPort(): PacketPort & { readonly kept: ArrayBuffer[] } {
  const port: PacketPort = new Fabric({ autoRun: true }).openPort({ addresses: [ADDRESS] });
  const counters = { ...port.counters, piecesKept: 0 };
  return Object.assign(over(port, { counters }), { kept: [] });
}

describe('A provider over a packet port', () => {
  it('has the calls and counters that its port has beside the contract', async () => {
    let port: ReturnType<typeof keepingPort> | undefined;
    const provider = hcaProvider({
      name: 'keeping',
      key: ADDRESS,
      port: () => (port = keepingPort()),
      hooks: (opened) => ({
        allocate(bytes) {
          const piece = new ArrayBuffer(bytes);
          opened.kept.push(piece);
          return piece;
        },
        portCounters: ['piecesKept'],
      }),
    });
    const ia = await openIa(provider);
    const memory = ia.allocate(4096, { pz: ia.createPz() });
    assert.ok(port?.kept.includes(memory.bytes.buffer as ArrayBuffer));
    const { piecesKept, sentPackets } = ia.deviceCounters();
    assert.deepEqual([piecesKept, sentPackets], [0, 0]);
    await ia.close();
  });

  it('refuses hooks that are none, by name', async () => {
    const provider = hcaProvider({
      name: 'keeping',
      key: ADDRESS,
      port: keepingPort,
      hooks: () => ({ mapFiles: () => undefined }) as never,
    });
    await assert.rejects(openIa(provider), /hcaProvider: .*"mapFiles".*mapFile/);
  });
});
