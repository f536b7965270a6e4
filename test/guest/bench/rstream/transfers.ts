/** The loop of rstream over a socket of ours, without a look at the bytes, as it is measured. */
import type { RdmaSocket } from '../../../../samples/ulp/socket/index.js';
import { leave, writeAll } from '../../rsocket/reader.js';
import { transfersOf, type Work } from './work.js';

const SYNC_BYTES = 16;

/** Counts what comes, and tells when so many bytes have. */
class Arrivals {
  private received = 0;
  private wanted = 0;
  private resolve: (() => void) | undefined = undefined;
  private reject: ((error: Error) => void) | undefined = undefined;

  constructor(socket: RdmaSocket) {
    socket.on('data', (chunk: Buffer) => {
      this.received += chunk.length;
      this.look();
    });
    socket.on('error', (error) => this.reject?.(error));
  }

  take(bytes: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.wanted = bytes;
      this.resolve = resolve;
      this.reject = reject;
      this.look();
    });
  }

  private look(): void {
    const { resolve } = this;
    if (resolve === undefined || this.received < this.wanted) return;
    this.received -= this.wanted;
    this.resolve = undefined;
    resolve();
  }
}

/** @returns microseconds a transfer */
export async function transfer(socket: RdmaSocket, work: Work, isClient: boolean): Promise<number> {
  const arrivals = new Arrivals(socket);
  const turn = async (bytes: Uint8Array, ours: boolean): Promise<void> => {
    await (ours ? writeAll(socket, bytes) : arrivals.take(bytes.length));
  };
  const sync = new Uint8Array(SYNC_BYTES);
  await turn(sync, isClient);
  await turn(sync, !isClient);
  const payload = new Uint8Array(work.bytes);
  const startMs = performance.now();
  for (let round = 0; round < work.rounds; round++) {
    for (let n = 0; n < work.transfers; n++) await turn(payload, isClient);
    for (let n = 0; n < work.transfers; n++) await turn(payload, !isClient);
  }
  const microseconds = (performance.now() - startMs) * 1000;
  await leave(socket);
  return microseconds / transfersOf(work);
}
