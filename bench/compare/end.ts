/** One side of a cell, in a process of its own; the benchmark tells it what to do by messages. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Cell, Counters } from './cells.js';

/** Where the server is to be found, and what of its memory may be written. */
export interface Target {
  readonly port: number;
  readonly address: bigint;
  readonly rmrContext: number;
}

/** What the client has counted. */
export interface Count {
  readonly messages: number;
  /** Those of the time that counts: a stream's first fifth only warms up. */
  readonly counted: number;
  /** The time of these. */
  readonly seconds: number;
  /** Half round trips in microseconds: median and 99th percentile. */
  readonly p50?: number;
  readonly p99?: number;
}

/** Part of the time of a stream that is not counted. */
export const LEAD_IN = 0.2;

export interface End {
  /** Server: gets ready for the connections of one cell. */
  listen(cell: Cell): Promise<Target>;
  /** Client: connects, measures for so many seconds, and waits for what is in flight. */
  run(cell: Cell, target: Target, seconds: number): Promise<Count>;
  /** Ends the connections. */
  stop(): Promise<void>;
  /** What its device has counted; absent, or undefined, where nobody tells. */
  counters?(): Counters | undefined;
  /** Ends everything. */
  close(): Promise<void>;
}

export type Call =
  | { readonly call: 'listen'; readonly cell: Cell }
  | { readonly call: 'run'; readonly cell: Cell; readonly target: Target; readonly seconds: number }
  /** Only asks for the CPU time so far. */
  | { readonly call: 'look' }
  | { readonly call: 'counters' }
  /** Begins to count what is allocated on the heap; the next one ends it and answers the bytes. */
  | { readonly call: 'count-allocation' }
  | { readonly call: 'allocated' }
  | { readonly call: 'stop' }
  | { readonly call: 'close' };

export interface Answer {
  readonly value?: unknown;
  readonly error?: string;
  /** User and system time of the process, in seconds. */
  readonly cpuSeconds: number;
}

/** Turns of a spin loop between two turns of the event loop. */
const SPIN_TURNS = 4096;

/** Calls `turn` without sleeping until `done`; messages and handlers have their turn in between. */
export async function spinUntil(done: () => boolean, turn: () => void): Promise<void> {
  while (!done()) {
    for (let i = 0; i < SPIN_TURNS && !done(); i++) turn();
    await nextTurn();
  }
}
