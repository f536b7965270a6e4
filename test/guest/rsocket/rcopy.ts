/**
 * rcopy of librdmacm: a file from the client to the server. Messages are in the byte order of the
 * machines: version, command, length, data (mode, or status), id; then what a command adds.
 */
import { createHash } from 'node:crypto';
import type { RdmaSocket } from '../../../samples/ulp/socket/index.js';
import { leave, readBytes, writeAll } from './reader.js';

export const RCOPY_PORT = 7427;
const HEADER_BYTES = 16;
const Command = { OPEN: 1, CLOSE: 2, WRITE: 3, RESPONSE: 0x80 } as const;
const MODE = 0o100644;
const PIECE_BYTES = 1 << 20;

interface Header {
  readonly command: number;
  readonly length: number;
  readonly data: number;
  readonly id: bigint;
}

function encode({ command, length, data, id }: Header): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES);
  bytes.writeUInt8(command, 1);
  bytes.writeUInt16LE(length, 2);
  bytes.writeUInt32LE(data, 4);
  bytes.writeBigUInt64LE(id, 8);
  return bytes;
}

async function receive(socket: RdmaSocket): Promise<Header> {
  const bytes = await readBytes(socket, HEADER_BYTES);
  if (bytes[0] !== 0) throw new Error(`version ${bytes[0]}`);
  return {
    command: bytes.readUInt8(1),
    length: bytes.readUInt16LE(2),
    data: bytes.readUInt32LE(4),
    id: bytes.readBigUInt64LE(8),
  };
}

async function expect(socket: RdmaSocket, command: number): Promise<void> {
  const { command: answered, data } = await receive(socket);
  if (answered !== (command | Command.RESPONSE)) throw new Error(`answer ${answered}`);
  if (data !== 0) throw new Error(`status ${data} to command ${command}`);
}

/** @returns the digest of the file that has come, and its name */
export async function serveRcopy(socket: RdmaSocket): Promise<string> {
  const hash = createHash('sha256');
  let path = '';
  for (;;) {
    const header = await receive(socket);
    const { command, length, id } = header;
    if (command === Command.OPEN) {
      path = (await readBytes(socket, length - HEADER_BYTES)).toString().replace(/\0+$/, '');
    } else if (command === Command.WRITE) {
      const size = Number((await readBytes(socket, 8)).readBigUInt64LE());
      for (let left = size; left > 0;) {
        const piece = await readBytes(socket, Math.min(left, PIECE_BYTES));
        hash.update(piece);
        left -= piece.length;
      }
    } else if (command !== Command.CLOSE) throw new Error(`command ${command}`);
    const answer = command | Command.RESPONSE;
    await writeAll(socket, encode({ command: answer, length: HEADER_BYTES, data: 0, id }));
    if (command === Command.CLOSE) break;
  }
  await leave(socket);
  return `${path} ${hash.digest('hex')}`;
}

export async function copyTo(socket: RdmaSocket, file: Buffer, path: string): Promise<void> {
  const name = Buffer.alloc((path.length + 8) & ~7);
  name.write(path);
  const open = HEADER_BYTES + name.length;
  await writeAll(socket, encode({ command: Command.OPEN, length: open, data: MODE, id: 0n }));
  await writeAll(socket, name);
  await expect(socket, Command.OPEN);
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(file.length));
  const write = HEADER_BYTES + size.length;
  await writeAll(socket, encode({ command: Command.WRITE, length: write, data: 0, id: 0n }));
  await writeAll(socket, size);
  await writeAll(socket, file);
  await expect(socket, Command.WRITE);
  await writeAll(socket, encode({ command: Command.CLOSE, length: HEADER_BYTES, data: 0, id: 0n }));
  await expect(socket, Command.CLOSE);
  await leave(socket);
}
