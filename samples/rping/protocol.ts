/**
 * The protocol of librdmacm's rping (port 7174), one ping:
 *
 * 1. the client sends the place of its source buffer;
 * 2. the server reads it by RDMA and sends "go ahead";
 * 3. the client sends the place of its sink buffer;
 * 4. the server writes what it read into it by RDMA and sends "go ahead";
 * 5. the client compares.
 *
 * Every message is 16 bytes: address u64, rkey u32, length u32, big-endian. What a "go ahead" says
 * has no meaning. The text ends with a zero byte, and the server writes no further than that.
 */
import type { Remote } from 'dapl/flow';

export const RPING_PORT = 7174;
export const MESSAGE_BYTES = 16;

/** A "go ahead" message: its content has no meaning. */
export const GO_AHEAD = new Uint8Array(MESSAGE_BYTES);

/** Sizes that rping itself accepts. */
export const SIZE_BYTES = { min: 26, max: 65_535, default: 64 } as const;

/** A buffer that the peer may read or write. */
export type BufferPlace = Required<Remote>;

/** Encodes the message that announces a buffer. */
export function placeMessage({ address, rmrContext, length }: BufferPlace): Uint8Array {
  const message = new Uint8Array(MESSAGE_BYTES);
  const view = viewOf(message);
  view.setBigUint64(0, BigInt(address));
  view.setUint32(8, rmrContext);
  view.setUint32(12, length);
  return message;
}

/** @throws RangeError unless the message has 16 bytes */
export function placeOf(message: Uint8Array): BufferPlace {
  const view = viewOf(message);
  return {
    address: view.getBigUint64(0),
    rmrContext: view.getUint32(8),
    length: view.getUint32(12),
  };
}

const FIRST_LETTER = 'A'.charCodeAt(0);
const LETTERS = 'z'.charCodeAt(0) - FIRST_LETTER + 1;

/** Fills a buffer with the text of a ping: its number, then a run of letters, then a zero byte. */
export function fillPing(buffer: Uint8Array, ping: number): void {
  const head = new TextEncoder().encode(`rdma-ping-${ping}: `);
  for (let at = head.length; at < buffer.length; at++) {
    buffer[at] = FIRST_LETTER + ((ping + at - head.length) % LETTERS);
  }
  buffer.set(head);
  buffer[buffer.length - 1] = 0;
}

/** Length of the text with its zero byte, or of the whole buffer if there is none. */
export function textLength(buffer: Uint8Array): number {
  const end = buffer.indexOf(0);
  return end < 0 ? buffer.length : end + 1;
}

/** The text without its zero byte. */
export function textOf(buffer: Uint8Array): string {
  const end = buffer.indexOf(0);
  return new TextDecoder('latin1').decode(end < 0 ? buffer : buffer.subarray(0, end));
}

function viewOf(message: Uint8Array): DataView {
  if (message.length !== MESSAGE_BYTES) {
    throw new RangeError(`an rping message has ${MESSAGE_BYTES} bytes, not ${message.length}`);
  }
  return new DataView(message.buffer, message.byteOffset, message.byteLength);
}

/** The peer sends one message and waits for ours: two receives are always enough. */
export const RECEIVES = { receives: { buffers: 2, bufferBytes: MESSAGE_BYTES } } as const;

/** Timeout for an unresponsive peer. A peer that is gone is detected sooner. */
export const STEP = { timeoutMs: 10_000 } as const;
