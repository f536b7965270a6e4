/**
 * Control messages of the transfer: one SEND each, a type byte and fixed fields in network order.
 * The file itself is sent by RDMA WRITE; these messages describe it.
 */

/** Length of receive buffers, and of the longest message. */
export const MESSAGE_BYTES = 512;
const DIGEST_BYTES = 32;
const MAX_TEXT_BYTES = 400;

export type Message =
  /** Sender: a file of this name and size. */
  | { readonly type: 'offer'; readonly sizeBytes: number; readonly name: string }
  /** Receiver: it already has `offsetBytes` (with this digest); write into these slots. */
  | {
      readonly type: 'grant';
      readonly offsetBytes: number;
      readonly prefixDigest: Uint8Array;
      readonly address: bigint;
      readonly rmrContext: number;
      readonly slotBytes: number;
      readonly slots: number;
    }
  /** Sender: continues from here (0 if the prefix belongs to another file). */
  | { readonly type: 'start'; readonly offsetBytes: number }
  /** Sender: this slot holds the next bytes of the file. */
  | { readonly type: 'chunk'; readonly slot: number; readonly lengthBytes: number }
  /** Receiver: the bytes of this slot are stored; the slot is free again. */
  | { readonly type: 'credit'; readonly slot: number }
  /** Sender: everything is written; the digest of the whole file. */
  | { readonly type: 'done'; readonly digest: Uint8Array }
  /** Receiver: true if its digest is the same. */
  | { readonly type: 'result'; readonly verified: boolean; readonly digest: Uint8Array }
  /** Either side: stops, with the reason. */
  | { readonly type: 'stop'; readonly reason: string };

const TYPES = ['offer', 'grant', 'start', 'chunk', 'credit', 'done', 'result', 'stop'] as const;

/** Encodes a message: at most MESSAGE_BYTES. */
export function encode(message: Message): Uint8Array {
  const bytes = new Uint8Array(MESSAGE_BYTES);
  return bytes.subarray(0, write(message, bytes));
}

/** @returns the length of the message */
function write(message: Message, bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer);
  view.setUint8(0, TYPES.indexOf(message.type));
  switch (message.type) {
    case 'offer':
      view.setBigUint64(1, BigInt(message.sizeBytes));
      return 9 + putText(bytes, 9, message.name);
    case 'grant':
      view.setBigUint64(1, BigInt(message.offsetBytes));
      bytes.set(message.prefixDigest, 9);
      view.setBigUint64(41, message.address);
      view.setUint32(49, message.rmrContext);
      view.setUint32(53, message.slotBytes);
      view.setUint32(57, message.slots);
      return 61;
    case 'start':
      view.setBigUint64(1, BigInt(message.offsetBytes));
      return 9;
    case 'chunk':
      view.setUint32(1, message.slot);
      view.setUint32(5, message.lengthBytes);
      return 9;
    case 'credit':
      view.setUint32(1, message.slot);
      return 5;
    case 'done':
      bytes.set(message.digest, 1);
      return 1 + DIGEST_BYTES;
    case 'result':
      view.setUint8(1, message.verified ? 1 : 0);
      bytes.set(message.digest, 2);
      return 2 + DIGEST_BYTES;
    case 'stop':
      return 1 + putText(bytes, 1, message.reason);
  }
}

/**
 * Reads a message.
 * @throws RangeError for an unknown type or a wrong length: the peer speaks another protocol
 */
export function decode(bytes: Uint8Array): Message {
  const type = TYPES[bytes[0] ?? 255];
  if (type === undefined || bytes.length < LEAST[type]) {
    throw new RangeError(`not a transfer message: type ${bytes[0]}, ${bytes.length} bytes`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  switch (type) {
    case 'offer':
      return { type, sizeBytes: Number(view.getBigUint64(1)), name: getText(bytes, 9) };
    case 'grant':
      return {
        type,
        offsetBytes: Number(view.getBigUint64(1)),
        prefixDigest: bytes.slice(9, 41),
        address: view.getBigUint64(41),
        rmrContext: view.getUint32(49),
        slotBytes: view.getUint32(53),
        slots: view.getUint32(57),
      };
    case 'start':
      return { type, offsetBytes: Number(view.getBigUint64(1)) };
    case 'chunk':
      return { type, slot: view.getUint32(1), lengthBytes: view.getUint32(5) };
    case 'credit':
      return { type, slot: view.getUint32(1) };
    case 'done':
      return { type, digest: bytes.slice(1, 33) };
    case 'result':
      return { type, verified: view.getUint8(1) === 1, digest: bytes.slice(2, 34) };
    case 'stop':
      return { type, reason: getText(bytes, 1) };
  }
}

const LEAST: Readonly<Record<Message['type'], number>> = {
  offer: 9,
  grant: 61,
  start: 9,
  chunk: 9,
  credit: 5,
  done: 33,
  result: 34,
  stop: 1,
};

function putText(bytes: Uint8Array, at: number, text: string): number {
  return new TextEncoder().encodeInto(text, bytes.subarray(at, at + MAX_TEXT_BYTES)).written;
}

function getText(bytes: Uint8Array, at: number): string {
  return new TextDecoder().decode(bytes.subarray(at));
}
