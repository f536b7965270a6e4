/**
 * Tells a client of dtest the server's address and provider, in 128 bytes of text over TCP; the
 * client opens the same provider. The address is written as a little-endian machine prints network
 * order: 10.0.0.1 is 0100000a.
 */
import { once } from 'node:events';
import { connect, createServer, isIPv4, type Socket } from 'node:net';

const TCP_PORT = 15_828;
const TEXT_BYTES = 128;
const TEXT = /^[0-9a-f]{4}:[0-9a-f]{8}:[0-9a-f]{8}:([0-9a-f]{8}):([^\0]*)\0/;
const TIMEOUT_MS = 10_000;

export interface Introduction {
  /** Undefined if the text names no IPv4 address: the client then keeps its own. */
  readonly address: string | undefined;
  readonly provider: string;
}

export function writeIntroduction({ address, provider }: Introduction): Buffer {
  const octets = isIPv4(address ?? '') ? (address ?? '').split('.').map(Number) : [0, 0, 0, 0];
  const number = Buffer.from(octets).readUInt32LE().toString(16).padStart(8, '0');
  const text = `0000:00000000:00000000:${number}:${provider}`;
  if (Buffer.byteLength(text) >= TEXT_BYTES) throw new Error(`the name "${provider}" is too long`);
  const bytes = Buffer.alloc(TEXT_BYTES);
  bytes.write(text);
  return bytes;
}

/** @throws Error if the bytes are no introduction */
export function readIntroduction(bytes: Buffer): Introduction {
  const [, number = '', provider = ''] = TEXT.exec(bytes.toString('latin1')) ?? [];
  if (bytes.length !== TEXT_BYTES || number === '') {
    throw new Error('the answer is not from a dtest server');
  }
  const octets = Buffer.alloc(4);
  octets.writeUInt32LE(Number.parseInt(number, 16));
  const address = octets.readUInt32LE() === 0 ? undefined : octets.join('.');
  return { address, provider };
}

/** Waits for one client and sends it the introduction. */
export async function introduceServer(own: string, introduction: Introduction): Promise<void> {
  const server = createServer();
  try {
    server.listen(TCP_PORT, own);
    const [socket] = (await once(server, 'connection')) as [Socket];
    socket.on('error', () => undefined);
    socket.end(writeIntroduction(introduction));
    await once(socket, 'finish');
    // The C program keeps its end open, so do not wait for it.
    socket.destroy();
  } finally {
    server.close();
  }
}

/** Asks the server for its introduction. @throws Error, in a sentence, if there is none */
export async function meetServer(host: string): Promise<Introduction> {
  const socket = connect(TCP_PORT, host);
  socket.setTimeout(TIMEOUT_MS, () => {
    socket.destroy(new Error(`no answer in ${TIMEOUT_MS} ms`));
  });
  const parts: Buffer[] = [];
  let length = 0;
  try {
    for await (const part of socket as AsyncIterable<Buffer>) {
      parts.push(part);
      length += part.length;
      if (length >= TEXT_BYTES) break;
    }
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`no server of dtest at ${host}: ${why}`, { cause });
  } finally {
    socket.destroy();
  }
  return readIntroduction(Buffer.concat(parts).subarray(0, TEXT_BYTES));
}
