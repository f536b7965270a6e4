import assert from 'node:assert/strict';

import { PseudoHeader, icrcPacket } from '../../../providers/hca/wire/icrc.js';
import { solveIdentification } from '../../../providers/softroce/dgram/identification.js';
import { SeededRandom } from '../../../providers/mock/index.js';
import { GOLDEN_PACKETS, bytesOf, viewOf } from './golden-packets.js';

const ICRC_BYTES = 4;

function recoverIpId(received: number, withIdZero: number, udpPayloadBytes: number): number {
  return solveIdentification(received ^ withIdZero, udpPayloadBytes - ICRC_BYTES);
}

function randomFlow(random: SeededRandom): PseudoHeader {
  const gid = (): Uint8Array =>
    Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...random.bytes(4));
  return new PseudoHeader().setFlow(gid(), gid(), random.below(65536), 4791);
}

describe('IP identification recovery', () => {
  it('finds the identification of every captured IPv4 packet', () => {
    for (const { name, hex } of GOLDEN_PACKETS.filter((packet) => packet.hex.startsWith('45'))) {
      const packet = bytesOf(hex);
      const view = viewOf(packet);
      const gid = (at: number): Uint8Array =>
        bytesOf(`00000000000000000000ffff${hex.slice(at * 2, at * 2 + 8)}`);
      const pseudo = new PseudoHeader().setFlow(gid(12), gid(16), view.getUint16(20), 4791);
      const end = packet.length - 4;
      const withZero = icrcPacket(pseudo.begin(packet.length - 28), packet, 28, end);
      const received = view.getUint32(end, true);
      const id = recoverIpId(received, withZero, packet.length - 28);
      assert.equal(id, view.getUint16(4), name);
    }
  });

  it('finds all 65536 identifications', () => {
    const random = new SeededRandom(5);
    const pseudo = randomFlow(random);
    const roce = random.bytes(44);
    const withZero = icrcPacket(pseudo.begin(48), roce, 0, 44);
    for (let id = 0; id < 65536; id += 1) {
      const received = icrcPacket(pseudo.begin(48, id), roce, 0, 44);
      assert.equal(recoverIpId(received, withZero, 48), id);
    }
  });

  it('finds them in packets of any length, the longest included', () => {
    const random = new SeededRandom(6);
    const lengths = [16, 20, 280, 1044, 4140, 65507];
    for (let round = 0; round < 3000; round += 1) {
      const length = lengths[round] ?? 16 + random.below(4200);
      const pseudo = randomFlow(random);
      const roce = random.bytes(length - 4);
      const id = random.below(65536);
      const withZero = icrcPacket(pseudo.begin(length), roce, 0, length - 4);
      const received = icrcPacket(pseudo.begin(length, id), roce, 0, length - 4);
      assert.equal(recoverIpId(received, withZero, length), id);
    }
  });

  it('lets about one corrupted packet in 65536 pass', () => {
    const random = new SeededRandom(7);
    const rounds = 1_000_000;
    let passed = 0;
    for (let round = 0; round < rounds; round += 1) {
      if (recoverIpId(random.u32(), random.u32(), 48 + (round & 0x3f)) >= 0) passed += 1;
    }
    const expected = rounds / 65536;
    assert.ok(passed > expected / 2 && passed < expected * 2, `${passed} of ${rounds}`);
  });

  it('notices every single damaged bit', () => {
    const random = new SeededRandom(8);
    const pseudo = randomFlow(random);
    const roce = random.bytes(60);
    const received = icrcPacket(pseudo.begin(64, 0x1234), roce, 0, 60);
    let missed = 0;
    for (let bit = 0; bit < 60 * 8; bit += 1) {
      if (bit >> 3 === 4) continue;
      const damaged = roce.slice();
      damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (0x80 >> (bit & 7));
      const withZero = icrcPacket(pseudo.begin(64), damaged, 0, 60);
      if (recoverIpId(received, withZero, 64) >= 0) missed += 1;
    }
    assert.equal(missed, 0);
  });
});
