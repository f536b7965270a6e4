/** Threads of one process, each with a slot of one address. */
import assert from 'node:assert/strict';
import { hasLongCases } from '../support/lane.js';
import { loopback } from '../support/loopback.js';
import { openDescriptors, openMain, PORT, settled, Thread } from './thread-scene.js';

let hosts = 1;

const newAddress = (): string => loopback(84, hosts++);

for (const shm of hasLongCases ? [false, true] : [true]) {
  const way = shm ? 'through shared memory' : 'over UDP';
  describe(`threads of one process with slots of one address, ${way}`, function () {
    this.timeout(120_000);

    it('talk with one another, and with a device elsewhere', async () => {
      const [address, elsewhere] = [newAddress(), newAddress()];
      const main = await openMain(address, true, shm);
      const outside = await openMain(elsewhere, false, shm);
      const peers = [
        { address, port: PORT },
        { address, port: PORT + 1 },
        { address: elsewhere, port: PORT },
      ];
      const listening = await Thread.open({ address, shm, port: PORT + 1 });
      const talking = await Promise.all(peers.map((peer) => Thread.open({ address, shm, peer })));
      await Promise.all(talking.map((thread) => thread.talks()));
      const misdelivered = main.deviceCounters()['misdelivered'] ?? 0;
      assert.ok(misdelivered < 100, `${misdelivered} packets came to the wrong thread`);
      await Promise.all([...talking, listening].map((thread) => thread.end()));
      await main.close();
      await outside.close();
    });

    it('go on when the one that was first is ended', async () => {
      const address = newAddress();
      const before = openDescriptors();
      const first = await Thread.open({ address, shm, port: PORT + 1 });
      const main = await openMain(address, true, shm);
      const peer = { address, port: PORT };
      const steady = await Thread.open({ address, shm, peer });
      await steady.talks();
      await first.end();
      await steady.talks();
      const next = await Thread.open({ address, shm, port: PORT + 1, peer });
      await next.talks();
      await steady.talks();
      await Promise.all([steady.end(), next.end()]);
      await main.close();
      await settled(() => openDescriptors() <= before, 'descriptors are closed');
    });
  });
}
