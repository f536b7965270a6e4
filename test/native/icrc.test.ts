import assert from 'node:assert/strict';
import { solveIdentification } from '../../providers/softroce/dgram/identification.js';
import { pattern } from '../../plugins/testing/port/harness.js';
import { GOLDEN_PACKETS, bytesOf } from '../unit/wire/golden-packets.js';
import { nativeAddon } from './addon.js';

interface Parsed {
  readonly source: Uint8Array;
  readonly destination: Uint8Array;
  readonly sourcePort: number;
  readonly destinationPort: number;
  readonly identification: number;
  /** BTH to pad. */
  readonly packet: Uint8Array;
  readonly icrc: number;
}

function parse(hex: string): Parsed {
  const bytes = bytesOf(hex);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const ipv4 = view.getUint8(0) >> 4 === 4;
  const mapped = (at: number): Uint8Array =>
    Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...bytes.subarray(at, at + 4));
  const udp = ipv4 ? 20 : 40;
  const end = bytes.length - 4;
  return {
    source: ipv4 ? mapped(12) : bytes.slice(8, 24),
    destination: ipv4 ? mapped(16) : bytes.slice(24, 40),
    sourcePort: view.getUint16(udp),
    destinationPort: view.getUint16(udp + 2),
    identification: ipv4 ? view.getUint16(4) : 0,
    packet: bytes.slice(udp + 8, end),
    icrc: view.getUint32(end, true),
  };
}

function icrcWith(parsed: Parsed, identification: number): number {
  const { source, sourcePort, destination, destinationPort, packet } = parsed;
  const addon = nativeAddon();
  return addon.icrc(source, sourcePort, destination, destinationPort, identification, packet);
}

describe('native ICRC', () => {
  for (const { name, hex } of GOLDEN_PACKETS) {
    it(`agrees with the captured ${name}`, () => {
      const parsed = parse(hex);
      assert.equal(icrcWith(parsed, parsed.identification), parsed.icrc);
    });

    if (!hex.startsWith('45')) continue;
    it(`finds the identification of the captured ${name}`, () => {
      const parsed = parse(hex);
      const difference = (icrcWith(parsed, 0) ^ parsed.icrc) >>> 0;
      const { length } = parsed.packet;
      assert.equal(nativeAddon().solveIdentification(difference, length), parsed.identification);
      assert.equal(solveIdentification(difference, length), parsed.identification);
    });
  }

  it('finds every identification, and none for one difference in 2^16', () => {
    const parsed = parse(GOLDEN_PACKETS[0]?.hex ?? '');
    const base = icrcWith(parsed, 0);
    for (let id = 0; id < 65536; id += 97) {
      const difference = (icrcWith(parsed, id) ^ base) >>> 0;
      assert.equal(solveIdentification(difference, parsed.packet.length), id);
    }
    const random = new Uint32Array(pattern(400_000, 3).buffer);
    const accepted = random.filter((word) => {
      const native = nativeAddon().solveIdentification(word, 4108);
      assert.equal(solveIdentification(word, 4108), native);
      return native >= 0;
    });
    assert.ok(accepted.length < 12, `${String(accepted.length)} of 100000 accepted`);
  });
});
