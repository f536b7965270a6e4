/** What `npm run bench:rstream` measures, and what is said to a worker of ours. */

/** A run of rstream: in each round so many transfers of the client, then as many of the server. */
export interface Work {
  readonly bytes: number;
  readonly transfers: number;
  readonly rounds: number;
}

export type Call =
  /** Listens for one connection; the answer says that it does. */
  | { readonly call: 'serve'; readonly work: Work }
  /** Connects, and answers microseconds a transfer. */
  | { readonly call: 'run'; readonly server: string; readonly work: Work }
  /** What was served has ended. */
  | { readonly call: 'stop' };

export const RSTREAM_PORT = 7471;

const KIB = 1024;
/** Single transfers, each answered: half round trips. */
const TRIPS = 200;
/** Bytes one way of a size that is streamed. */
const VOLUME_BYTES = 4 * KIB * KIB;
const LARGEST_TRIP_BYTES = 4 * KIB;

export function isTrip(bytes: number): boolean {
  return bytes <= LARGEST_TRIP_BYTES;
}

export function workOf(bytes: number): Work {
  if (isTrip(bytes)) return { bytes, transfers: 1, rounds: TRIPS };
  return { bytes, transfers: Math.ceil(VOLUME_BYTES / bytes), rounds: 1 };
}

/** Transfers of both sides. */
export function transfersOf({ transfers, rounds }: Work): number {
  return 2 * transfers * rounds;
}
