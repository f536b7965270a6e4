/**
 * rstream of librdmacm: 16 bytes each way, then in each round so many transfers of the client and
 * as many of the server. With `-T v` byte n of a direction is n modulo 256, and each side looks.
 */
import type { RdmaSocket } from '../../../samples/ulp/socket/index.js';
import { leave, readBytes, writeAll } from './reader.js';

export const RSTREAM_PORT = 7471;
const SYNC_BYTES = 16;
const PIECE_BYTES = 1 << 18;

export interface RstreamOptions {
  readonly sizeBytes: number;
  readonly transfers: number;
  readonly rounds: number;
}

class Direction {
  private sent = 0;
  private received = 0;

  constructor(private readonly socket: RdmaSocket) {}

  async send(count: number): Promise<void> {
    const bytes = new Uint8Array(count);
    for (let i = 0; i < count; i++) bytes[i] = this.sent++;
    await writeAll(this.socket, bytes);
  }

  async receive(count: number): Promise<void> {
    for (let left = count; left > 0;) {
      const bytes = await readBytes(this.socket, Math.min(left, PIECE_BYTES));
      for (const byte of bytes) {
        if (byte === (this.received & 0xff)) this.received++;
        else throw new Error(`byte ${this.received} is ${byte}`);
      }
      left -= bytes.length;
    }
  }
}

export async function runRstream(
  socket: RdmaSocket,
  { sizeBytes, transfers, rounds }: RstreamOptions,
  isClient: boolean,
): Promise<void> {
  const direction = new Direction(socket);
  const turn = async (bytes: number, ours: boolean): Promise<void> => {
    await (ours ? direction.send(bytes) : direction.receive(bytes));
  };
  await turn(SYNC_BYTES, isClient);
  await turn(SYNC_BYTES, !isClient);
  for (let round = 0; round < rounds; round++) {
    for (let n = 0; n < transfers; n++) await turn(sizeBytes, isClient);
    for (let n = 0; n < transfers; n++) await turn(sizeBytes, !isClient);
  }
  await leave(socket);
}
