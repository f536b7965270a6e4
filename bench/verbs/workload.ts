/**
 * What `npm run bench:verbs` measures: four of perftest's programs, in message sizes, with the same
 * parameters on both sides. docs/verbs.md says what they are.
 */

/** perftest's programs, by name; a size of one of them is a cell of the table. */
export const TESTS = ['ib_send_lat', 'ib_write_lat', 'ib_write_bw', 'ib_read_bw'] as const;
export type Test = (typeof TESTS)[number];

export interface Work {
  readonly test: Test;
  readonly bytes: number;
  /** Messages of a bandwidth test; round trips of a latency test. */
  readonly iterations: number;
  /** Messages in flight: perftest's --tx-depth. One in a latency test. */
  readonly depth: number;
  /** Every so many messages one is signalled: perftest's --cq-mod. */
  readonly moderation: number;
  /** READ requests outstanding on the wire: perftest's --outs. */
  readonly reads: number;
}

/** Where a listening end is to be found, and what of its memory may be reached. */
export interface Target {
  readonly port: number;
  /** Hexadecimal: JSON has no 64-bit numbers. */
  readonly address: string;
  readonly rmrContext: number;
}

/** MiB/s, perftest's "MB/sec"; of a latency test half round trips, in microseconds. */
export type Result = { readonly mibps: number } | { readonly p50: number; readonly p99: number };

/** A call to a worker and its answer, a line of JSON each. */
export type Call =
  /** An endpoint and its memory; the answer says where they are. */
  | { readonly call: 'prepare'; readonly work: Work; readonly listens: boolean }
  /** The server's loop, with the client's memory. */
  | { readonly call: 'serve'; readonly target: Target }
  /** The client connects and measures, with the server's memory. */
  | { readonly call: 'run'; readonly server: string; readonly target: Target }
  | { readonly call: 'stop' };
export type Answer = { readonly value?: Target | Result } | { readonly error: string };

export const isLatency = (test: Test): boolean => test.endsWith('_lat');

const KIB = 1024;
const DEPTH = 64;
/** What perftest does up to 8 KiB of its own accord; longer messages are all signalled. */
const MODERATION = 16;
const MODERATED_BYTES = 8 * KIB;
const READS = 16;
/** Bytes of a bandwidth cell, within bounds that make it neither a blink nor a long wait. */
const VOLUME_BYTES = 64 * KIB * KIB;
const MESSAGES = { least: 2 * DEPTH, most: 4000 } as const;
/** Round trips, and how many bytes of them are enough: long ones take milliseconds. */
const TRIPS = { least: 100, most: 500 } as const;

export function workOf(test: Test, bytes: number): Work {
  const bounds = isLatency(test) ? TRIPS : MESSAGES;
  const wanted = Math.floor(VOLUME_BYTES / bytes);
  return {
    test,
    bytes,
    iterations: Math.min(bounds.most, Math.max(bounds.least, wanted)),
    depth: isLatency(test) ? 1 : DEPTH,
    moderation: isLatency(test) || bytes > MODERATED_BYTES ? 1 : MODERATION,
    reads: READS,
  };
}
