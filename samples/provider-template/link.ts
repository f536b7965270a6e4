/** A link between two threads: shared memory for packets, and a message port for wake-ups. */
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { ByteRing } from './byte-ring.js';

const RING_BYTES = 1 << 20;

/** The link's end for a thread: pass it as `workerData`, with `wake` in the `transferList`. */
export interface ThreadLink {
  readonly memory: SharedArrayBuffer;
  readonly wake: MessagePort;
  /** The end that this is. */
  readonly side: 0 | 1;
}

export function createLink(): readonly [ThreadLink, ThreadLink] {
  const memory = new SharedArrayBuffer(2 * ByteRing.bytesFor(RING_BYTES));
  const { port1, port2 } = new MessageChannel();
  return [
    { memory, wake: port1, side: 0 },
    { memory, wake: port2, side: 1 },
  ];
}

export interface LinkRings {
  readonly inbound: ByteRing;
  readonly outbound: ByteRing;
}

export function ringsOf({ memory, side }: ThreadLink): LinkRings {
  const bytes = ByteRing.bytesFor(RING_BYTES);
  const rings = [0, 1].map((which) => new ByteRing(memory, which * bytes, bytes));
  return { inbound: rings[side]!, outbound: rings[1 - side]! };
}
