/** Memory of an XRC receive queue that opener and host share: three rings, one after another. */
import {
  CQE_BYTES,
  Ring,
  RING_HEADER_BYTES,
  ringEntries,
  rqeBytes,
  type SharedReceiveRing,
} from '../../../core/spi/index.js';

const SUBMISSION_BYTES = 4;
const LINE_BYTES = 128;
/** Places of the two indices in front of the entries. */
const PRODUCER_WORD = 0;
const CONSUMER_WORD = 16;

export interface QueueRings {
  readonly receives: SharedReceiveRing;
  /** Written by the host. It has room for a completion of every receive: it never overruns. */
  readonly completions: Ring;
}

function sizes(maxWr: number, maxSge: number): readonly (readonly [number, number])[] {
  const entries = ringEntries(maxWr);
  return [
    [entries, rqeBytes(maxSge)],
    [entries, SUBMISSION_BYTES],
    [entries, CQE_BYTES],
  ];
}

const ringBytes = (entries: number, strideBytes: number): number =>
  Math.ceil(Ring.bytes(entries, strideBytes) / LINE_BYTES) * LINE_BYTES;

/** Bytes of the memory. */
export function queueRingsBytes(maxWr: number, maxSge: number): number {
  return sizes(maxWr, maxSge).reduce((sum, size) => sum + ringBytes(...size), 0);
}

export function queueRings(memory: ArrayBuffer, maxWr: number, maxSge: number): QueueRings {
  let at = 0;
  const [slots, submissions, completions] = sizes(maxWr, maxSge).map(([entries, strideBytes]) => {
    const words = new Uint32Array(memory);
    const place = {
      words,
      producerWord: at / 4 + PRODUCER_WORD,
      consumerWord: at / 4 + CONSUMER_WORD,
      firstWord: (at + RING_HEADER_BYTES) / 4,
      betweenProcesses: true,
    };
    at += ringBytes(entries, strideBytes);
    return new Ring(place, entries, strideBytes);
  }) as [Ring, Ring, Ring];
  return { receives: { slots, submissions }, completions };
}
