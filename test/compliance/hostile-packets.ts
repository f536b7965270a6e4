/** Datagrams that nobody should send: random bytes, and packets seen before with parts changed. */
import type { SeededRandom } from 'dapl/providers/mock';

const OPCODE_WRITE_ONLY = 0x0a;
const BTH = { OPCODE: 0, QPN: 5, PSN: 9, LENGTH: 12 } as const;
const RETH = { ADDRESS: 12, RKEY: 20, DMA_LENGTH: 24 } as const;

/** What a random datagram is: a body to be given a right ICRC, or bytes to be sent as they are. */
export interface Forged {
  readonly bytes: Uint8Array;
  readonly sealed: boolean;
}

export function forge(random: SeededRandom, seen: readonly Uint8Array[]): Forged {
  const captured = seen[random.below(Math.max(1, seen.length))];
  const kind = random.below(8);
  if (kind === 0 || captured === undefined) return { bytes: noise(random, 96), sealed: true };
  if (kind === 1) return { bytes: multipleOf4(noise(random, 200)), sealed: false };
  const bytes = captured.slice();
  if (kind === 2)
    return { bytes: bytes.subarray(0, random.below(bytes.length + 1)), sealed: false };
  if (kind === 3) return { bytes: multipleOf4(longer(bytes, random.below(2000))), sealed: false };
  if (kind === 4) bytes[BTH.OPCODE] = random.u32();
  if (kind === 5) bytes.set([random.u32(), random.u32(), random.u32()], BTH.QPN);
  if (kind === 6 && bytes[BTH.OPCODE] === OPCODE_WRITE_ONLY) {
    bytes.set([random.u32(), random.u32(), random.u32(), random.u32()], RETH.RKEY);
  }
  for (let changes = random.below(4); changes > 0; changes--) {
    bytes[random.below(Math.min(bytes.length, 48))] = random.u32();
  }
  return { bytes, sealed: false };
}

/**
 * A write that fits the connection in everything (the next PSN) but in what it asks for.
 * @param write a captured RDMA WRITE Only
 */
export function nextWrite(
  write: Uint8Array,
  change: { readonly addressDelta?: bigint; readonly rkeyDelta?: number },
): Uint8Array {
  const { addressDelta = 0n, rkeyDelta = 0 } = change;
  const bytes = write.slice();
  const view = new DataView(bytes.buffer);
  const psn = ((view.getUint32(BTH.PSN - 1) + 1) & 0xffffff) | 0x80000000;
  view.setUint32(BTH.PSN - 1, psn);
  view.setBigUint64(RETH.ADDRESS, view.getBigUint64(RETH.ADDRESS) + addressDelta);
  view.setUint32(RETH.RKEY, view.getUint32(RETH.RKEY) + rkeyDelta);
  return bytes;
}

export function isWriteOnly(packet: Uint8Array): boolean {
  return packet[BTH.OPCODE] === OPCODE_WRITE_ONLY && packet.length >= RETH.DMA_LENGTH + 4;
}

export function qpnOf(packet: Uint8Array): number {
  const [high = 0, middle = 0, low = 0] = packet.subarray(BTH.QPN, BTH.QPN + 3);
  return (high << 16) | (middle << 8) | low;
}

/** Replaces what is in the header of a captured packet. */
export function withHeader(
  packet: Uint8Array,
  offset: number,
  bytes: readonly number[],
): Uint8Array {
  const copy = packet.slice();
  copy.set(bytes, offset);
  return copy;
}

function noise(random: SeededRandom, most: number): Uint8Array {
  return Uint8Array.from({ length: random.below(most) }, () => random.u32());
}

function longer(bytes: Uint8Array, by: number): Uint8Array {
  const result = new Uint8Array(bytes.length + by);
  result.set(bytes);
  return result;
}

/** As every RoCE packet is; the rest is dropped before anything else is looked at. */
function multipleOf4(bytes: Uint8Array): Uint8Array {
  return bytes.subarray(0, bytes.length & ~3);
}
