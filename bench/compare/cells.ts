/** A cell: one workload on one contender. */

/**
 * Streams: so many messages in flight, each completion consumed. Pings: one to and fro. Calls: so
 * many requests in flight, each answered.
 */
export type Workload = 'send' | 'write' | 'read' | 'ping' | 'ping-write' | 'calls' | 'idle';

/** How our two ends learn of completions. */
export type Delivery = 'dequeue' | 'upcall' | 'events$' | 'for-await';

/** Whether messages follow one another, so many in flight, as opposed to pings. */
export function isStream({ workload }: Cell): boolean {
  return workload === 'send' || workload === 'write' || workload === 'read';
}

/**
 * `pinned`: a core for each side. `unpinned`: all cores for both. `neighbour`: pinned, and a
 * process that never sleeps on the core of the client.
 */
export type Arrangement = 'pinned' | 'unpinned' | 'neighbour';

export interface Cell {
  /** The same for the same measurement, which several rows may share. */
  readonly name: string;
  readonly contender: string;
  readonly workload: Workload;
  readonly bytes: number;
  /** Messages in flight, over all endpoints. */
  readonly depth: number;
  /** `spin`: both sides look for completions without sleeping; `event`: they are woken. */
  readonly polling: 'spin' | 'adaptive' | 'event';
  readonly delivery: Delivery;
  readonly endpoints: number;
  /** Upper bound of the path MTU; 0 for what the link carries. */
  readonly mtuBytes: number;
  readonly arrangement: Arrangement;
  /** Memory that each side goes round in, in bytes; 0 for what is in flight (server: twice). */
  readonly workingSetBytes: number;
}

const KIB = 1024;
export const MIB = 1024 * KIB;
export const KIB64 = 64 * KIB;
/** More than the caches of a processor hold. */
export const LARGE_SET = 256 * MIB;

/** Messages in flight at each size: 4 MiB, 2 MiB, and 64 of the smallest. */
const DEPTHS: Readonly<Record<number, number>> = { [MIB]: 4, [KIB64]: 32, 64: 64 };

export type CellOptions = Partial<
  Pick<
    Cell,
    'polling' | 'delivery' | 'endpoints' | 'mtuBytes' | 'depth' | 'arrangement' | 'workingSetBytes'
  >
>;

/** @param bytes of a message; pings and `idle` have one of 8 bytes in flight */
export function cell(
  contender: string,
  workload: Workload,
  bytes: number,
  options: CellOptions = {},
): Cell {
  const { polling = 'spin', endpoints = 1, mtuBytes = 0, workingSetBytes = 0 } = options;
  const { delivery = polling === 'spin' ? 'dequeue' : 'upcall' } = options;
  const { depth = DEPTHS[bytes] ?? 1 } = options;
  const { arrangement = 'pinned' } = options;
  const what = { contender, workload, bytes, depth, polling, delivery, endpoints, mtuBytes };
  const whole = { ...what, arrangement, workingSetBytes };
  return { name: Object.values(whole).join('-'), ...whole };
}

/**
 * Messages that the server has memory for on each endpoint: what the client has in flight, and as
 * much again for what is acknowledged before a receive has been posted in its place.
 */
export function serverSlots(cell: Cell): number {
  const { endpoints, depth } = cell;
  const inFlight = endpoints === 1 ? 2 * depth : Math.ceil(depth / endpoints);
  return Math.max(2, inFlight, slotsOfSet(cell));
}

/** Messages that a side goes round in, by its working set; 0 if that is what is in flight. */
export function slotsOfSet({ workingSetBytes, bytes }: Cell): number {
  return Math.floor(workingSetBytes / bytes);
}

/** What devices have counted, by name: of one end, or of both. */
export type Counters = Readonly<Record<string, number>>;

/** What a run of a cell came to. */
export interface Measurement {
  /** GB/s or M/s; the median half round trip in us for pings; percent of a core for `idle`. */
  readonly value: number;
  /** 99th percentile of the half round trip, in us; pings only. */
  readonly p99?: number;
  /** Payload of all messages. */
  readonly bytes: number;
  /** User and system time of both sides, in seconds. */
  readonly cpuSeconds: number;
  /** What the devices of both sides have counted meanwhile; absent without such. */
  readonly counters?: Counters;
}
