/**
 * The attributes of a queue pair as words of its memory: a connection has fifteen, and as fields of
 * an object they would take three times as much. The first word says which of them have been given;
 * the others are 0.
 */
import type { QueuePairAttributes } from '../../../core/spi/index.js';

/** Numbers, by their places: that of `enableSqdAsyncNotify` is 0 or 1. */
export const ATTRIBUTE = {
  accessFlags: 1,
  pkeyIndex: 2,
  portNumber: 3,
  qkey: 4,
  pathMtuBytes: 5,
  destinationQpn: 6,
  receivePsn: 7,
  sendPsn: 8,
  maxDestRdAtomic: 9,
  maxRdAtomic: 10,
  minRnrTimer: 11,
  timeout: 12,
  retryCount: 13,
  rnrRetryCount: 14,
  enableSqdAsyncNotify: 15,
} as const satisfies Partial<Record<keyof QueuePairAttributes, number>>;
export const ATTRIBUTE_WORDS = 16;

type AttributeName = keyof typeof ATTRIBUTE;
const NAMES = Object.keys(ATTRIBUTE) as AttributeName[];

/** Keeps those that are given. @param first of the words */
export function keepAttributes(
  words: Uint32Array,
  first: number,
  attributes: QueuePairAttributes,
): void {
  for (const name of NAMES) {
    const value = attributes[name];
    if (value === undefined) continue;
    words[first]! |= 1 << ATTRIBUTE[name];
    words[first + ATTRIBUTE[name]] = Number(value);
  }
}

export function keptAttributes(words: Uint32Array, first: number): QueuePairAttributes {
  const kept = NAMES.filter((name) => ((words[first] ?? 0) & (1 << ATTRIBUTE[name])) !== 0);
  const entries = kept.map((name) => {
    const value = words[first + ATTRIBUTE[name]]!;
    return [name, name === 'enableSqdAsyncNotify' ? value !== 0 : value];
  });
  return Object.fromEntries(entries) as QueuePairAttributes;
}
