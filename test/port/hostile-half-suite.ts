import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { CHANNEL_MTU_BYTES, gidFromIp } from '../../core/spi/index.js';
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import { meet } from '../support/joined-ports.js';
import { loopback, testPort } from '../support/loopback.js';
import { gidOf, nothing } from '../../plugins/testing/port/bench-pair.js';
import {
  header,
  pattern,
  psnOf,
  receiveSome,
  sendAll,
} from '../../plugins/testing/port/harness.js';
import { HostileHalf, lies, takeIn } from './hostile-half.js';

const UDP_PORT = testPort(39);

/** @param slots that are written at least */
export function describeHostileHalf(slots: number): void {
  it(`${slots} slots of a peer that lies: it loses its channel, and no more`, async () => {
    const seed = Math.floor(Math.random() * 2 ** 32);
    const options = { udpPort: UDP_PORT, shm: { bounceBytes: 2 << 20, ringSlots: 64 } };
    const victim = openNativePort({ addresses: [loopback(0, 36)], ...options });
    const honest = openNativePort({ addresses: [loopback(0, 37)], ...options });
    try {
      victim.watch(nothing);
      honest.watch(nothing);
      await meet(honest, victim, UDP_PORT);
      const path = honest.addPath(gidOf(victim), 0, CHANNEL_MTU_BYTES);
      const memory = pattern(100_000);
      const region = honest.addRegion(memory.buffer, 0, memory.length);
      const hostile = new HostileHalf(victim, gidFromIp(loopback(0, 38)), UDP_PORT, lies(seed));
      let taken = 0;
      let met = 0;
      for (let turn = 0; hostile.slots < slots; turn++) {
        const before = hostile.channel;
        hostile.meet();
        if (hostile.channel !== before) met++;
        hostile.lie();
        taken += takeIn(victim);
        if (turn % 16 === 0) await delay(0);
      }
      assert.ok(taken > 0 && met > 1, `seed ${seed}: ${taken} packets, ${met} channels`);
      while (takeIn(victim) > 0);
      const segments = [{ region, offset: 0, length: memory.length }];
      await sendAll(honest, [{ path, header: header(77), segments }]);
      const [received] = await receiveSome(victim, 1);
      assert.equal(received && psnOf(received), 77, `seed ${seed}`);
      assert.deepEqual(received?.bytes.subarray(12), memory);
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    } finally {
      await Promise.all([victim.close(), honest.close()]);
    }
  });
}
