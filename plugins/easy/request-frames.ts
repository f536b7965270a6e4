/** Requests and replies on the wire: a header in front of each message of a channel. */
import { FlowError } from 'dapl/flow';

/** Behind the announcement of the channel in the private data of the connection: "DATr", 1. */
export const REQUESTS_ID = Uint8Array.of(0x44, 0x41, 0x54, 0x72, 1);

/** How many requests the server takes at once, behind its announcement. */
export function limitBytes(requests: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, requests);
  return bytes;
}

/** Reverses `limitBytes`; at least 1. */
export function limitOf(data: Uint8Array): number {
  return Math.max(1, new DataView(data.buffer, data.byteOffset).getUint32(0));
}

/** Kind in byte 0, zeros, and the number of the request from byte 4 on, big-endian. */
const HEADER_BYTES = 8;
const ID_AT = 4;

/** The client sends REQUEST and CANCEL, the server REPLY and FAILURE. */
export const FRAME = { REQUEST: 1, CANCEL: 2, REPLY: 3, FAILURE: 4 } as const;
export type FrameKind = (typeof FRAME)[keyof typeof FRAME];

export interface Frame {
  readonly kind: number;
  readonly id: number;
  readonly body: Uint8Array;
}

/** Most characters of the text of an error that go to the peer. */
const MOST_TEXT = 2000;

export function headerOf(kind: FrameKind, id: number): Uint8Array {
  const header = new Uint8Array(HEADER_BYTES);
  header[0] = kind;
  new DataView(header.buffer).setUint32(ID_AT, id);
  return header;
}

/** @throws FlowError DAT_CONN_BROKEN if the peer does not speak this protocol */
export function frameOf(message: Uint8Array): Frame {
  if (message.length < HEADER_BYTES) throw breach(`a message of ${message.length} bytes`);
  const view = new DataView(message.buffer, message.byteOffset, HEADER_BYTES);
  return {
    kind: view.getUint8(0),
    id: view.getUint32(ID_AT),
    body: message.subarray(HEADER_BYTES),
  };
}

/** The peer has sent what the protocol does not have. */
export function breach(what: string): FlowError {
  return new FlowError('DAT_CONN_BROKEN', {
    operation: 'conn',
    message: `the peer has sent ${what}, which is not of requests and replies`,
    reason: 'PEER_PROTOCOL',
  });
}

/** The error of a handler at the other side. Its text is the peer's: do not decide by it. */
export class RemoteError extends Error {
  override readonly name = 'RemoteError';
  /** Name of the error that the handler threw: `TypeError`. */
  readonly remoteName: string;
  /** Its `code`, if that is text. */
  readonly code: string | undefined;

  /** @internal */
  constructor({ name, message, code }: Failure) {
    super(message);
    this.remoteName = name;
    this.code = code;
  }
}

interface Failure {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
}

/** An error for the peer: without its stack and cause. */
export function failureBytes(error: unknown): Uint8Array {
  const { name, message, code } =
    error instanceof Error
      ? (error as Error & { readonly code?: unknown })
      : { name: 'Error', message: String(error), code: undefined };
  const failure: Failure = {
    name: cut(name),
    message: cut(message),
    ...(typeof code === 'string' && { code: cut(code) }),
  };
  return new TextEncoder().encode(JSON.stringify(failure));
}

/** @throws FlowError DAT_CONN_BROKEN if it is not what `failureBytes` makes */
export function failureOf(body: Uint8Array): RemoteError {
  let found: Partial<Failure> | null;
  try {
    found = JSON.parse(new TextDecoder().decode(body)) as Partial<Failure> | null;
  } catch {
    throw breach('an error that is not JSON');
  }
  const { name, message, code } = found ?? {};
  if (typeof name !== 'string' || typeof message !== 'string') {
    throw breach('an error without name and message');
  }
  const known = { name: cut(name), message: cut(message) };
  return new RemoteError(typeof code === 'string' ? { ...known, code: cut(code) } : known);
}

function cut(text: unknown): string {
  return String(text).slice(0, MOST_TEXT);
}
