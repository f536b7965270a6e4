import assert from 'node:assert/strict';
import * as layout from '../../../core/spi/wire/packet-layout.js';
import {
  aethSyndrome,
  dethQkey,
  dethSrcQpn,
  iethRkey,
  immdtValue,
  rethDmaLength,
  xrcethSrqn,
  atomicAckLo,
  atomicCompareLo,
} from '../../../providers/hca/wire/extended-headers.js';
import { bthDestQpn, bthOpcode, bthPsn } from '../../../core/spi/wire/bth.js';
import { SeededRandom } from '../../../providers/mock/index.js';
import { GOLDEN_PACKETS, bytesOf } from './golden-packets.js';

const ACCESSORS: readonly (readonly [Uint8Array, (view: DataView, offset: number) => number])[] = [
  [layout.DETH_OFFSET_OF, dethQkey],
  [layout.DETH_OFFSET_OF, dethSrcQpn],
  [layout.XRCETH_OFFSET_OF, xrcethSrqn],
  [layout.RETH_OFFSET_OF, rethDmaLength],
  [layout.ATOMIC_ETH_OFFSET_OF, atomicCompareLo],
  [layout.AETH_OFFSET_OF, aethSyndrome],
  [layout.ATOMIC_ACK_ETH_OFFSET_OF, atomicAckLo],
  [layout.IMMDT_OFFSET_OF, immdtValue],
  [layout.IETH_OFFSET_OF, iethRkey],
];

const SEEDS = GOLDEN_PACKETS.map(({ hex }) => bytesOf(hex).slice(hex.startsWith('45') ? 28 : 48));

function mutated(random: SeededRandom): Uint8Array {
  if (random.below(3) === 0) return random.bytes(random.below(80));
  const seed = SEEDS[random.below(SEEDS.length)] as Uint8Array;
  const packet = seed.slice(0, random.below(2) === 0 ? seed.length : random.below(seed.length + 1));
  for (let count = random.below(6); count > 0 && packet.length > 0; count -= 1) {
    const place = random.below(2) === 0 ? random.below(2) : random.below(packet.length);
    if (place < packet.length) packet[place] = random.below(256);
  }
  return packet;
}

describe('packet parsers under fuzzing', () => {
  it('never throw and never leave the packet, over 100,000 packets', () => {
    const random = new SeededRandom(9);
    const verdicts = new Map<number, number>();
    for (let round = 0; round < 100_000; round += 1) {
      // A view of exactly the packet: any read outside it is a RangeError.
      const packet = mutated(random);
      const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
      const verdict = layout.checkPacket(view, 0, packet.length);
      verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1);
      if (verdict !== layout.PACKET_CHECK.ok) continue;
      const opcode = bthOpcode(view, 0);
      assert.ok(bthDestQpn(view, 0) <= 0xffffff && bthPsn(view, 0) <= 0xffffff);
      for (const [offsets, accessor] of ACCESSORS) {
        const offset = offsets[opcode] as number;
        if (offset > 0) assert.ok(accessor(view, offset) >= 0);
      }
      const payload = layout.payloadLength(view, 0, packet.length);
      assert.ok(payload >= 0);
      assert.ok((layout.HEADER_LENGTH_OF[opcode] as number) + payload <= packet.length);
    }
    const reached = Object.values(layout.PACKET_CHECK).filter((code) => verdicts.has(code));
    assert.equal(reached.length, Object.keys(layout.PACKET_CHECK).length, 'all verdicts occur');
  });

  it('judge a packet the same at any offset of an arena', () => {
    const random = new SeededRandom(10);
    for (let round = 0; round < 20_000; round += 1) {
      const packet = mutated(random);
      const arena = new Uint8Array(packet.length + 33);
      arena.set(packet, 33);
      const view = new DataView(arena.buffer);
      const alone = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
      assert.equal(
        layout.checkPacket(view, 33, packet.length),
        layout.checkPacket(alone, 0, packet.length),
      );
    }
  });
});
