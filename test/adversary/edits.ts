/** What the adversary does to the bytes of a packet: a table of edits by what they are about. */
import { CM_CODECS } from '../../plugins/cm/wire/message.js';
import { CM_ATTRIBUTE } from '../../plugins/cm/wire/cm-codec.js';
import type { BytesField, UintField, Uint64Field } from '../../plugins/cm/wire/field-table.js';
import { MAD_BYTES } from '../../core/spi/index.js';
import type { HeaderName } from '../../core/spi/wire/opcode.js';
import { HEADER_LENGTH_OF } from '../../core/spi/wire/packet-layout.js';
import { ICRC_BYTES, MAX_PACKET_BYTES, type WirePacket } from '../../providers/mock/wire-packet.js';
import {
  BTH_FIELDS,
  changeField,
  HEADER_FIELDS,
  headerAt,
  type Overheard,
  pickKey,
  writeBits,
} from './fields.js';

/** A packet in the adversary's hands: BTH to ICRC are the first `length` bytes. */
export type Draft = Pick<WirePacket, 'buffer' | 'view' | 'length'>;

/** Words of CM messages that have gone by: ids and queue pair numbers of other connections. */
export type Words = readonly number[];

export interface Edit {
  readonly name: string;
  /** Relative frequency. */
  readonly weight: number;
  /** False when there is nothing of its kind in the packet. */
  apply(draft: Draft, x: Overheard, words: Words): boolean;
}

const MAD_HEADER_FIELDS: readonly (readonly [string, number, number])[] = [
  ['base version', 0, 8],
  ['class', 1, 8],
  ['class version', 2, 8],
  ['method', 3, 8],
  ['status', 4, 16],
  ['transaction id, high', 8, 32],
  ['transaction id', 12, 32],
  ['attribute id', 16, 16],
  ['attribute modifier', 20, 32],
  ['RMPP version', 24, 8],
  ['RMPP type', 25, 8],
  ['RMPP flags', 26, 8],
  ['RMPP status', 27, 8],
  ['RMPP segment number', 28, 32],
  ['RMPP payload length or window', 32, 32],
];

const CM_LAYOUTS = new Map(
  Object.entries(CM_ATTRIBUTE).map(([name, id]) => [
    id as number,
    Object.values<UintField | Uint64Field | BytesField>(
      CM_CODECS[name as keyof typeof CM_ATTRIBUTE].layout,
    ),
  ]),
);

function opcodeOf({ buffer }: Draft): number {
  return buffer[0] ?? 0;
}

/** Where the MAD of a datagram begins, or -1. */
export function madAt(draft: Draft): number {
  const start = HEADER_LENGTH_OF[opcodeOf(draft)] ?? 0;
  const isGsi = draft.view.getUint32(4) << 8 === 1 << 8;
  return isGsi && draft.length === start + MAD_BYTES + ICRC_BYTES ? start : -1;
}

/** The message of a CM MAD, by its attribute id, and where it begins. */
export function cmMessageAt(
  draft: Draft,
): { readonly id: number; readonly at: number } | undefined {
  const mad = madAt(draft);
  if (mad < 0 || draft.buffer[mad + 1] !== 7) return undefined;
  return { id: draft.view.getUint16(mad + 16), at: mad + 24 };
}

function header(name: HeaderName, weight: number): Edit {
  const fields = HEADER_FIELDS[name] ?? [];
  return {
    name,
    weight,
    apply(draft, x) {
      const at = headerAt(opcodeOf(draft), name);
      if (at < 0 || at + 4 > draft.length - ICRC_BYTES) return false;
      changeField(draft.buffer, at, x.random.pick(fields), x);
      return true;
    },
  };
}

/** A key with an address at the edge of its memory: one byte before, the last one, one behind. */
function wholeReth(draft: Draft, x: Overheard): boolean {
  const at = headerAt(opcodeOf(draft), 'RETH');
  const picked = pickKey(x);
  if (at < 0 || !picked) return false;
  const { random } = x;
  const { key, iova, length } = picked;
  const { view } = draft;
  const old = view.getUint32(at + 12);
  const dma = random.percent(80) ? old : random.pick([1, length, length + 1, old + 1]);
  const behind = length - dma + 1;
  const skew = random.pick([-1, 0, 1, behind, behind, behind - 1, behind - 2, length]);
  view.setBigUint64(at, BigInt.asUintN(64, iova + BigInt(skew)));
  view.setUint32(at + 8, key);
  view.setUint32(at + 12, dma);
  return true;
}

function wholeAtomic(draft: Draft, x: Overheard): boolean {
  const at = headerAt(opcodeOf(draft), 'AtomicETH');
  const picked = pickKey(x);
  if (at < 0 || !picked) return false;
  const { key, iova, length } = picked;
  const skew = x.random.pick([-8, -1, 0, 4, 8, length - 8, length - 7, length]);
  draft.view.setBigUint64(at, BigInt.asUintN(64, iova + BigInt(skew)));
  draft.view.setUint32(at + 8, key);
  return true;
}

function cmField(draft: Draft, x: Overheard, words: Words): boolean {
  const found = cmMessageAt(draft);
  const layout = found && CM_LAYOUTS.get(found.id);
  if (!found || !layout) return false;
  const { random } = x;
  const f = random.pick(layout);
  if (f.kind === 'uint') {
    const value = random.percent(50) && words.length > 0 ? random.pick(words) : random.u32();
    for (const { byte, bit, width } of f.parts) {
      writeBits(draft.buffer, (found.at + byte) * 8 + bit, width, value);
    }
  } else {
    const length = f.kind === 'uint64' ? 8 : f.length;
    draft.buffer[found.at + f.byte + random.below(length)] = random.u32();
  }
  return true;
}

/** What is in the payload of a packet, pad included. */
function payloadBit(draft: Draft, { random }: Overheard): boolean {
  const start = HEADER_LENGTH_OF[opcodeOf(draft)] ?? 12;
  const end = draft.length - ICRC_BYTES;
  if (start === 0 || end <= start) return false;
  const at = start + random.below(end - start);
  draft.buffer[at] = (draft.buffer[at] ?? 0) ^ (1 << random.below(8));
  return true;
}

function truncate(draft: Draft, { random }: Overheard): boolean {
  const least = random.percent(90) ? 12 + ICRC_BYTES : ICRC_BYTES;
  if (draft.length <= least) return false;
  const cut = random.percent(50) ? 4 * random.between(1, 4) : random.between(1, draft.length);
  draft.length = Math.max(least, draft.length - cut);
  return true;
}

function lengthen(draft: Draft, { random }: Overheard): boolean {
  const more = random.percent(70) ? 4 * random.between(1, 8) : random.between(1, 2000);
  const end = Math.min(draft.length + more, MAX_PACKET_BYTES);
  if (end === draft.length) return false;
  draft.buffer.fill(random.u32(), draft.length - ICRC_BYTES, end);
  draft.length = end;
  return true;
}

function bthField(draft: Draft, x: Overheard): boolean {
  changeField(draft.buffer, 0, x.random.pick(BTH_FIELDS), x);
  return true;
}

function madField(draft: Draft, x: Overheard, words: Words): boolean {
  const mad = madAt(draft);
  if (mad < 0) return false;
  const { random } = x;
  const [, byte, width] = random.pick(MAD_HEADER_FIELDS);
  const known = random.percent(30) && words.length > 0;
  const value = random.percent(50) ? random.below(0x20) : random.u32();
  writeBits(draft.buffer, (mad + byte) * 8, width, known ? random.pick(words) : value);
  return true;
}

/** Another message of the CM, made of the same bytes. */
function cmAttribute(draft: Draft, { random }: Overheard): boolean {
  const mad = madAt(draft);
  if (mad < 0) return false;
  draft.view.setUint16(mad + 16, random.pick(Object.values(CM_ATTRIBUTE)));
  return true;
}

export const EDITS: readonly Edit[] = [
  { name: 'BTH', weight: 12, apply: bthField },
  header('DETH', 10),
  header('XRCETH', 10),
  header('RETH', 8),
  header('AtomicETH', 8),
  header('AETH', 6),
  header('AtomicAckETH', 6),
  header('ImmDt', 4),
  header('IETH', 20),
  { name: 'key and address', weight: 30, apply: wholeReth },
  { name: 'key and word', weight: 30, apply: wholeAtomic },
  { name: 'MAD header', weight: 8, apply: madField },
  { name: 'CM field', weight: 16, apply: cmField },
  { name: 'CM attribute', weight: 4, apply: cmAttribute },
  { name: 'payload', weight: 6, apply: payloadBit },
  { name: 'truncated', weight: 4, apply: truncate },
  { name: 'lengthened', weight: 4, apply: lengthen },
];
