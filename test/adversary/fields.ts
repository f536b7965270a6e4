/** Where the fields of every header are, and what an adversary would put there. */
import type { SeededRandom } from '../../providers/mock/index.js';
import { HEADER_LENGTH, type HeaderName, OPCODES } from '../../core/spi/wire/opcode.js';

/** What the adversary has overheard, and knows besides, of the node that a packet goes to. */
export interface Overheard {
  readonly random: SeededRandom;
  /** Keys of that node, live and dead, and where their memory begins and ends. */
  readonly keys: readonly Key[];
  /** Those of the protection domain that the packet is for. */
  readonly ownKeys: readonly Key[];
  readonly queuePairs: readonly number[];
  readonly sharedQueues: readonly number[];
  readonly qkeys: readonly number[];
}

export interface Key {
  readonly key: number;
  readonly iova: bigint;
  readonly length: number;
}

/** A new value of a field, given the present one. */
type Choice = (old: number, x: Overheard) => number;

export interface Field {
  readonly name: string;
  /** Bytes from the start of the header; bits from the most significant one of the first byte. */
  readonly byte: number;
  readonly bit: number;
  readonly width: number;
  readonly choose: Choice;
}

const flip: Choice = (old, { random }) => old ^ (1 << random.below(32));
const near: Choice = (old, { random }) => old + random.pick([1, -1, 2, -2, 5, 64, -64]);
const any: Choice = (_old, { random }) => random.u32();
const oneOf =
  (choices: readonly Choice[]): Choice =>
  (old, x) =>
    x.random.pick(choices)(old, x);
const edge: Choice = (_old, { random }) =>
  random.pick([0, 1, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff]);
const overheard =
  (list: (x: Overheard) => readonly number[]): Choice =>
  (old, x) => {
    const known = list(x);
    return known.length > 0 ? x.random.pick(known) : old;
  };

const keys: Choice = (old, x) => {
  const kind = x.random.below(10);
  return kind < 8 ? (pickKey(x)?.key ?? old) : kind < 9 ? near(old, x) : any(old, x);
};
const qpns = oneOf([overheard((x) => x.queuePairs), near, any]);
/** Of the same transport three times in four, so that it gets past the first check. */
const opcodes: Choice = (old, { random }) =>
  random.percent(75) ? (old & 0xe0) | random.below(0x18) : random.below(256);

function field(name: string, byte: number, bit: number, width: number, choose: Choice): Field {
  return { name, byte, bit, width, choose };
}

const DMA_LENGTH = oneOf([near, edge, any]);

// prettier-ignore
export const BTH_FIELDS: readonly Field[] = [
  field('opcode',     0, 0, 8,  opcodes),
  field('solicited',  1, 0, 1,  flip),
  field('migration',  1, 1, 1,  flip),
  field('pad count',  1, 2, 2,  any),
  field('version',    1, 4, 4,  any),
  field('P_Key',      2, 0, 16, oneOf([flip, any])),
  field('congestion', 4, 0, 2,  any),
  field('QPN',        5, 0, 24, qpns),
  field('AckReq',     8, 0, 1,  any),
  field('PSN',        9, 0, 24, oneOf([near, near, any])),
];

// prettier-ignore
export const HEADER_FIELDS: Readonly<Partial<Record<HeaderName, readonly Field[]>>> = {
  DETH: [
    field('Q_Key', 0, 0, 32, oneOf([overheard((x) => x.qkeys), flip, any])),
    field('source QPN', 5, 0, 24, qpns),
  ],
  XRCETH: [
    field('SRQN', 1, 0, 24, oneOf([overheard((x) => x.sharedQueues), near, any])),
  ],
  RETH: [
    field('address', 4, 0, 32, oneOf([near, flip, any])),
    field('address, high', 0, 0, 32, oneOf([near, edge, any])),
    field('rkey', 8, 0, 32, keys),
    field('DMA length', 12, 0, 32, DMA_LENGTH),
  ],
  AtomicETH: [
    field('address', 4, 0, 32, oneOf([near, flip, any])),
    field('rkey', 8, 0, 32, keys),
    field('swap or add', 16, 0, 32, any),
    field('compare', 24, 0, 32, any),
  ],
  AETH: [
    field('syndrome', 0, 0, 8, (_old, { random }) =>
      random.pick([0x1f, 0x00, 0x20, 0x3f, 0x40, 0x60, 0x61, 0x62, 0x63, 0x64, random.below(256)])),
    field('MSN', 1, 0, 24, oneOf([near, any])),
  ],
  AtomicAckETH: [
    field('original', 4, 0, 32, any),
  ],
  ImmDt: [
    field('immediate', 0, 0, 32, any),
  ],
  IETH: [
    field('invalidated rkey', 0, 0, 32, keys),
  ],
};

/** A key, more often one that belongs there. */
export function pickKey({ random, keys: all, ownKeys }: Overheard): Key | undefined {
  const from = ownKeys.length > 0 && random.percent(60) ? ownKeys : all;
  return from[random.below(from.length)];
}

/** Where a header of an opcode begins, or -1. */
export function headerAt(opcode: number, header: HeaderName): number {
  let at = 12;
  for (const name of OPCODES[opcode]?.headers ?? []) {
    if (name === header) return at;
    at += HEADER_LENGTH[name];
  }
  return -1;
}

export function readBits(bytes: Uint8Array, from: number, width: number): number {
  let value = 0;
  for (let i = from; i < from + width; i++) {
    value = value * 2 + (((bytes[i >> 3] ?? 0) >> (7 - (i & 7))) & 1);
  }
  return value;
}

/** The low bits of `value`, whatever its sign. */
export function writeBits(bytes: Uint8Array, from: number, width: number, value: number): void {
  for (let i = 0; i < width; i++) {
    const at = from + width - 1 - i;
    const mask = 1 << (7 - (at & 7));
    const bit = (value >>> i) & 1;
    bytes[at >> 3] = bit ? (bytes[at >> 3] ?? 0) | mask : (bytes[at >> 3] ?? 0) & ~mask;
  }
}

/** Gives a field of a header that begins at this byte a new value. */
export function changeField(bytes: Uint8Array, start: number, f: Field, x: Overheard): void {
  const from = (start + f.byte) * 8 + f.bit;
  writeBits(bytes, from, f.width, f.choose(readBits(bytes, from, f.width), x));
}
