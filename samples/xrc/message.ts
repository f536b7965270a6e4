/** What travels: its sender and receiver, which one of those it is, and bytes made of that. */

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

/** @throws Error when a byte is not as its sender wrote it */
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

/** Of queues and queue pairs. */
const NUMBER_BYTES = 3;

/** What a sender asks with: which one it is, and the number of its initiator. */
export interface Question {
  readonly sender: number;
  readonly initiatorQpn: number;
}

/** What it is told: the target that is for it, and the receivers' queues. */
export interface Answer {
  readonly targetQpn: number;
  readonly srqns: readonly number[];
}

/** Private data of a connection request. */
export function writeQuestion({ sender, initiatorQpn }: Question): Uint8Array {
  return Uint8Array.of(sender, ...writeNumbers([initiatorQpn]));
}

export function readQuestion(privateData: Uint8Array): Question {
  const [initiatorQpn = 0] = readNumbers(privateData.subarray(1), 1);
  return { sender: privateData[0] ?? 0, initiatorQpn };
}

/** Private data of what comes back. */
export function writeAnswer({ targetQpn, srqns }: Answer): Uint8Array {
  return Uint8Array.of(srqns.length, ...writeNumbers([targetQpn, ...srqns]));
}

export function readAnswer(privateData: Uint8Array): Answer {
  const count = privateData[0] ?? 0;
  const [targetQpn = 0, ...srqns] = readNumbers(privateData.subarray(1), 1 + count);
  return { targetQpn, srqns };
}

function writeNumbers(numbers: readonly number[]): Uint8Array {
  const bytes = Buffer.alloc(NUMBER_BYTES * numbers.length);
  for (const [i, number] of numbers.entries()) {
    bytes.writeUIntBE(number, i * NUMBER_BYTES, NUMBER_BYTES);
  }
  return bytes;
}

function readNumbers(bytes: Uint8Array, count: number): number[] {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  return Array.from({ length: count }, (_, i) => buffer.readUIntBE(i * NUMBER_BYTES, NUMBER_BYTES));
}
