// Tests the ICRC check for captures with packets of rdma_rxe, whose ICRC is known to be right.
import assert from 'node:assert/strict';

import { GOLDEN_PACKETS } from '../unit/wire/golden-packets.js';
import { icrcFault } from './icrc.js';

const ETHERNET_BYTES = 14;

function frameOf(hex: string): Buffer {
  const ethernet = Buffer.alloc(ETHERNET_BYTES);
  ethernet.writeUInt16BE(hex.startsWith('4') ? 0x0800 : 0x86dd, 12);
  return Buffer.concat([ethernet, Buffer.from(hex, 'hex')]);
}

/** Offsets in the frame that the network may change. */
function maskedBytes(frame: Buffer): number[] {
  const isIpv4 = frame.readUInt16BE(12) === 0x0800;
  const [ip, udp] = [ETHERNET_BYTES, ETHERNET_BYTES + (isIpv4 ? 20 : 40)];
  // Of the first byte of IPv6 only the lower half: where the bit is that gets flipped.
  const header = isIpv4 ? [1, 8, 10, 11] : [0, 1, 2, 3, 7];
  return [...header.map((offset) => ip + offset), udp + 6, udp + 7, udp + 8 + 4];
}

describe('guest: independent ICRC check', () => {
  for (const { name, hex } of GOLDEN_PACKETS) {
    it(`finds a flipped bit anywhere but in what the network may change: ${name}`, () => {
      const frame = frameOf(hex);
      assert.equal(icrcFault(frame), undefined);
      const masked = maskedBytes(frame);
      for (let offset = ETHERNET_BYTES; offset < frame.length; offset++) {
        const changed = Buffer.from(frame);
        changed[offset] = (changed[offset] ?? 0) ^ 0x04;
        assert.equal(icrcFault(changed) === undefined, masked.includes(offset), `byte ${offset}`);
      }
    });
  }
});
