/** The format of a message: sender, receiver, its number, and bytes derived from those. */

export const MAX_BYTES = 4096;
const HEADER_BYTES = 12;

export interface Heading {
  readonly sender: number;
  readonly receiver: number;
  /** Counts the messages of this sender to this receiver. */
  readonly sequence: number;
}

/** Writes a message; returns its length, which differs from one to the next. */
export function writeMessage(bytes: Uint8Array, heading: Heading): number {
  const { sender, receiver, sequence } = heading;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  view.setUint32(0, sender);
  view.setUint32(4, receiver);
  view.setUint32(8, sequence);
  const length = HEADER_BYTES + ((sequence * 997) % (MAX_BYTES - HEADER_BYTES));
  fill(bytes.subarray(HEADER_BYTES, length), heading);
  return length;
}

/** @throws Error if a byte differs from what its sender wrote */
export function readMessage(bytes: Uint8Array): Heading {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const sender = view.getUint32(0);
  const receiver = view.getUint32(4);
  const sequence = view.getUint32(8);
  const expected = new Uint8Array(MAX_BYTES);
  const length = writeMessage(expected, { sender, receiver, sequence });
  if (length !== bytes.length || Buffer.compare(bytes, expected.subarray(0, length)) !== 0) {
    throw new Error(`message ${sequence} of sender ${sender} is not what was sent`);
  }
  return { sender, receiver, sequence };
}

function fill(bytes: Uint8Array, { sender, receiver, sequence }: Heading): void {
  let x = (sender * 0x9e3779b1 + receiver * 0x85ebca6b + sequence) | 1;
  for (let i = 0; i < bytes.length; i++) {
    x = (Math.imul(x, 1664525) + 1013904223) | 0;
    bytes[i] = x >>> 24;
  }
}

/** Private data of a connection request: the number of the sender. */
export function introduce(sender: number): Uint8Array {
  return Uint8Array.of(sender);
}

/** Private data of the answer: the numbers of the receivers' queues, 32 bits each. */
export function listQueues(srqns: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(1 + 4 * srqns.length);
  bytes[0] = srqns.length;
  const view = new DataView(bytes.buffer);
  for (const [i, srqn] of srqns.entries()) view.setUint32(1 + 4 * i, srqn);
  return bytes;
}

export function queuesOf(privateData: Uint8Array): number[] {
  const view = new DataView(privateData.buffer, privateData.byteOffset, privateData.byteLength);
  return Array.from({ length: view.getUint8(0) }, (_, i) => view.getUint32(1 + 4 * i));
}
