import assert from 'node:assert/strict';
import { crc32 } from 'node:zlib';

import { crc32Update } from '../../../providers/hca/wire/crc32.js';
import {
  PseudoHeader,
  icrcBth,
  icrcPacket,
  icrcUpdate,
  icrcValue,
  readIcrc,
  writeIcrc,
} from '../../../providers/hca/wire/icrc.js';
import { SeededRandom } from '../../../providers/mock/index.js';
import { bytesOf, hexOf, viewOf } from './golden-packets.js';

const V4_A = bytesOf('00000000000000000000ffffc0a84d01');
const V4_B = bytesOf('00000000000000000000ffffc0a84d02');
const V6_A = bytesOf('fd770000000000000000000000000001');

describe('CRC-32', () => {
  it('agrees with zlib for all lengths and alignments', () => {
    const random = new SeededRandom(1);
    const bytes = random.bytes(300);
    for (let start = 0; start < 9; start += 1) {
      for (let end = start; end < 300; end += 7) {
        const expected = crc32(bytes.subarray(start, end));
        assert.equal(~crc32Update(0xffffffff, bytes, start, end) >>> 0, expected);
      }
    }
  });
});

describe('ICRC', () => {
  it('has the intermediate registers of the worked example', () => {
    const pseudo = new PseudoHeader().setFlow(V4_A, V4_B, 0xefd4, 4791);
    const roce = bytesOf('1100ffff0000001100d591b11f000001');
    const afterUdp = pseudo.begin(20, 0xeb6f);
    assert.equal(afterUdp >>> 0, 0xd72fedf4);
    const afterBth = icrcBth(afterUdp, roce, 0);
    assert.equal(afterBth >>> 0, 0x7e1a42e4);
    const afterAeth = icrcUpdate(afterBth, roce, 12, 16);
    assert.equal(afterAeth >>> 0, 0x52ee5e7e);
    assert.equal(icrcValue(afterAeth), 0xad11a181);
    const wire = new Uint8Array(4).fill(0xa5);
    writeIcrc(viewOf(wire), 0, 0xad11a181);
    assert.equal(hexOf(wire), '81a111ad');
    assert.equal(readIcrc(viewOf(wire), 0), 0xad11a181);
  });

  it('is the CRC of the masked packet, whatever the packet', () => {
    const random = new SeededRandom(2);
    for (let round = 0; round < 500; round += 1) {
      const isIpv4 = round % 2 === 0;
      const roce = random.bytes(12 + random.below(200));
      const [id, flags, sport, dport] = [1, 2, 3, 4].map(() => random.below(65536));
      const source = isIpv4 ? bytesOf('00000000000000000000ffff0a0b0c0d') : random.bytes(16);
      const destination = isIpv4 ? V4_B : V6_A;
      const pseudo = new PseudoHeader().setFlow(source, destination, sport ?? 0, dport ?? 0);
      const udpLength = 8 + roce.length + 4;
      const words = (...values: (number | undefined)[]): number[] =>
        values.flatMap((value = 0) => [value >>> 8, value & 0xff]);
      const ip = isIpv4
        ? [
            ...[0x45, 0xff, ...words(20 + udpLength, id, flags), 0xff, 17, 0xff, 0xff],
            ...[...source.subarray(12), ...destination.subarray(12)],
          ]
        : [0x6f, 0xff, 0xff, 0xff, ...words(udpLength), 17, 0xff, ...source, ...destination];
      const masked = roce.slice();
      masked[4] = 0xff;
      const lrh = new Array<number>(8).fill(0xff);
      const covered = Uint8Array.from([
        ...lrh,
        ...ip,
        ...words(sport, dport, udpLength, 0xffff),
        ...masked,
      ]);
      const register = pseudo.begin(roce.length + 4, id, flags);
      assert.equal(icrcPacket(register, roce, 0, roce.length), crc32(covered));
    }
  });

  it('does not depend on FECN, BECN and their reserved bits', () => {
    const pseudo = new PseudoHeader().setFlow(V4_A, V4_B, 1, 4791);
    const roce = new SeededRandom(3).bytes(16);
    const before = icrcPacket(pseudo.begin(20), roce, 0, 16);
    roce[4] = (roce[4] ?? 0) ^ 0xff;
    assert.equal(icrcPacket(pseudo.begin(20), roce, 0, 16), before);
    roce[8] = (roce[8] ?? 0) ^ 1;
    assert.notEqual(icrcPacket(pseudo.begin(20), roce, 0, 16), before);
  });

  it('gives the same in pieces as in one, and may switch flows', () => {
    const pseudo = new PseudoHeader().setFlow(V6_A, V6_A, 1, 2);
    pseudo.begin(1000, 7);
    pseudo.setFlow(V4_A, V4_B, 0xc000, 4791);
    assert.equal(pseudo.isIpv4, true);
    const roce = new SeededRandom(4).bytes(100);
    const whole = icrcPacket(pseudo.begin(104, 9), roce, 0, 100);
    let register = icrcBth(pseudo.begin(104, 9), roce, 0);
    for (let at = 12; at < 100; at += 11) {
      register = icrcUpdate(register, roce, at, Math.min(at + 11, 100));
    }
    assert.equal(icrcValue(register), whole);
  });

  it('refuses flows that cannot be', () => {
    const pseudo = new PseudoHeader();
    const short = new Uint8Array(4);
    assert.throws(() => pseudo.setFlow(short, V4_B, 1, 2), /sourceGid has 4 bytes, a GID has 16/);
    assert.throws(() => pseudo.setFlow(V4_A, V6_A, 1, 2), /must be of one family/);
    assert.throws(() => pseudo.setFlow(V4_A, V4_B, 65536, 2), /sourcePort is 65536.*0 to 65535/);
  });
});
