/** Ports of processes that share an address: datagrams and channels find the one they are for. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { CHANNEL_MTU_BYTES, gidFromIp } from '../../core/spi/index.js';
import { PEER_AGREEMENT, softwareGuid } from '../../core/spi/internal/index.js';
import { loadNativeAddon, type NativeAddon } from '../../providers/softroce/port/native-addon.js';
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import type { SocketPort } from '../../providers/softroce/port/port-options.js';
import { steeringProgram } from '../../providers/shared-address/steering.js';
import { nothing } from '../../plugins/testing/port/bench-pair.js';
import {
  header,
  pattern,
  psnOf,
  receiveSome,
  sendAll,
} from '../../plugins/testing/port/harness.js';
import { loopback, testPort } from '../support/loopback.js';

const UDP_PORT = testPort(39);
const ALONE = loopback(0, 85);
const SLOTS = 3;
const PACKETS = 60;
/** The first PSN of each slot: a packet shows where it was to go. */
const STEP = 1000;

function addon(): NativeAddon {
  const found = loadNativeAddon();
  assert.ok(found);
  return found;
}

function to(slot: number, psn: number, payloadBytes = 0): Uint8Array {
  const bytes = header(slot * STEP + psn, -payloadBytes & 3);
  bytes[5] = slot;
  return bytes;
}

for (const [family, shared] of [
  ['IPv4', loopback(0, 84)],
  ['IPv6', '::1'],
] as const) {
  describe(`ports that share an address, ${family}`, () => {
    const gid = gidFromIp(shared);
    const guid = softwareGuid(PEER_AGREEMENT.CHANNEL | PEER_AGREEMENT.SLOTS, randomInt(2 ** 32));
    const places: number[] = [];
    let slots: SocketPort[] = [];

    beforeEach(() => {
      for (let i = 0; i < SLOTS; i++) places.push(addon().bindGroupSocket(gid, 0, UDP_PORT));
      addon().attachSteering(places[0] ?? -1, Uint32Array.from(steeringProgram().flat()));
      slots = places.map((place, slot) =>
        openNativePort({
          addresses: [shared],
          udpPort: UDP_PORT,
          group: { slot, descriptors: [place] },
        }),
      );
      for (const port of slots) {
        port.watch(nothing);
        assert.ok(port.listen?.(guid));
      }
    });

    afterEach(async () => {
      await Promise.all(slots.map((port) => port.close()));
      for (const place of places.splice(0)) addon().closeDescriptor(place);
    });

    /** Each has got its own packets, in order. */
    async function expectAll(ports: readonly SocketPort[]): Promise<void> {
      for (const [slot, port] of ports.entries()) {
        const psns = (await receiveSome(port, PACKETS)).map(psnOf);
        assert.deepEqual(
          psns,
          Array.from({ length: PACKETS }, (_, i) => slot * STEP + i),
          `slot ${slot}`,
        );
      }
    }

    async function meet(from: SocketPort, slot: number): Promise<void> {
      const met = await new Promise((resolve) =>
        from.meet?.({ guid, gid, udpPort: UDP_PORT, slot }, resolve),
      );
      assert.equal(met, true);
    }

    it('get their own packets, however they are mixed when they are sent', async () => {
      const [sender] = slots as [SocketPort];
      const path = sender.addPath(gid, 0);
      const memory = pattern(4096);
      const region = sender.addRegion(memory.buffer, 0, memory.length);
      const packets = Array.from({ length: SLOTS * PACKETS }, (_, i) => ({
        path,
        // Runs of two: neither trains of one packet only, nor trains that cannot be mixed.
        header: to((i >> 1) % SLOTS, 2 * Math.floor(i / (2 * SLOTS)) + (i & 1), 4096),
        segments: [{ region, offset: 0, length: 4096 }],
      }));
      await sendAll(sender, packets);
      assert.ok(sender.counters.sentTrains < packets.length);
      await expectAll(slots);
      assert.equal(sender.counters.sentTrains, packets.length / 2);
    });

    it('have a channel with each other, and none with themselves', async () => {
      const [first] = slots as [SocketPort];
      for (let slot = 1; slot < SLOTS; slot++) await meet(first, slot);
      const paths = [1, 2].map((slot) => first.addPath(gid, 0, CHANNEL_MTU_BYTES, slot << 16));
      assert.notEqual(paths[0], paths[1]);
      assert.throws(() => first.addPath(gid, 0, CHANNEL_MTU_BYTES, 0), RangeError);
      const packets = Array.from({ length: 2 * PACKETS }, (_, i) => ({
        path: paths[i & 1] ?? -1,
        header: to(1 + (i & 1), i >> 1),
      }));
      await sendAll(first, packets);
      for (const slot of [1, 2]) {
        const port = slots[slot];
        assert.ok(port);
        const psns = (await receiveSome(port, PACKETS)).map(psnOf);
        assert.deepEqual(
          psns,
          [...Array(PACKETS).keys()].map((psn) => slot * STEP + psn),
        );
        assert.equal(port.counters.channelReceived, PACKETS);
      }
      assert.equal(first.counters.channelSent, 2 * PACKETS);
      const self = await new Promise((resolve) =>
        first.meet?.({ guid, gid, udpPort: UDP_PORT, slot: 0 }, resolve),
      );
      assert.equal(self, false);
    });

    if (family === 'IPv4') {
      it('have a channel each with a device that is one process, whose QPNs are any', async () => {
        const [first] = slots as [SocketPort];
        const alone = gidFromIp(ALONE);
        const other = openNativePort({ addresses: [ALONE], udpPort: UDP_PORT });
        try {
          other.watch(nothing);
          assert.ok(other.listen?.(softwareGuid(PEER_AGREEMENT.CHANNEL, randomInt(2 ** 32))));
          for (let slot = 0; slot < SLOTS; slot++) await meet(other, slot);
          const ways = slots.map((_, slot) =>
            other.addPath(gid, 0, CHANNEL_MTU_BYTES, (slot << 16) | 17),
          );
          assert.equal(new Set(ways).size, SLOTS);
          for (const [slot, path] of ways.entries()) {
            await sendAll(other, [{ path, header: to(slot, 7) }]);
            const port = slots[slot];
            assert.ok(port);
            assert.deepEqual((await receiveSome(port, 1)).map(psnOf), [slot * STEP + 7]);
          }
          const back = first.addPath(alone, 0, CHANNEL_MTU_BYTES, 0xabcdef);
          assert.equal(back, first.addPath(alone, 0, CHANNEL_MTU_BYTES, 0x11));
          await sendAll(first, [{ path: back, header: to(0, 9) }]);
          assert.deepEqual((await receiveSome(other, 1)).map(psnOf), [9]);
        } finally {
          await other.close();
        }
      });
    }
  });
}
