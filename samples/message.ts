/** Messages: registered memory, with its bytes for reading and writing. */
import type { Ia, LmrSegment, Pz } from 'dapl';

/** A message in registered memory. */
export interface Message {
  readonly segment: LmrSegment;
  readonly bytes: Buffer;
}

export function allocateMessage(ia: Ia, pz: Pz, lengthBytes: number): Message {
  const lmr = ia.allocate(lengthBytes, { pz });
  return { segment: lmr.segment(), bytes: bufferOver(lmr.bytes) };
}

function bufferOver(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
