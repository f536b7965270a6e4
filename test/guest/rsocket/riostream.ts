/**
 * riostream of librdmacm: each side publishes an area, and the other writes into it; the last byte
 * of an area is looked at until it is the next marker. With `-T v` the bytes before it are looked
 * at.
 */
import { setImmediate } from 'node:timers/promises';

import type { Iomap, RsocketStream } from '../../../samples/ulp/rsocket/index.js';

const SYNC_BYTES = 16;

export interface RiostreamOptions {
  readonly sizeBytes: number;
  readonly transfers: number;
  readonly rounds: number;
}

/** A stream whose bytes are asked for by number. */
class Bytes {
  private error: Error | undefined = undefined;
  private isClosed = false;

  constructor(readonly stream: RsocketStream) {
    stream.start({
      onReadable: () => undefined,
      onClose: (error) => {
        this.error = error;
        this.isClosed = true;
      },
    });
  }

  async read(count: number): Promise<void> {
    for (let left = count; left > 0;) {
      const view = this.stream.peek();
      if (view !== undefined) {
        const taken = Math.min(left, view.length);
        this.stream.consume(taken);
        left -= taken;
      } else await this.turn(`${left} bytes are missing`);
    }
  }

  async write(bytes: Uint8Array): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.stream.write([bytes], (error) => (error ? reject(error) : resolve()));
    });
  }

  async writeArea(bytes: Uint8Array): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.stream.iowrite([bytes], 0n, (error) => (error ? reject(error) : resolve()));
    });
  }

  /** What the peer writes into an area tells nothing: it is looked for in each turn of the loop. */
  async turn(what: string): Promise<void> {
    if (this.isClosed) throw this.error ?? new Error(`the peer has closed: ${what}`);
    await setImmediate();
  }

  async leave(): Promise<void> {
    this.stream.shutdown(() => undefined);
    while (!this.stream.hasEnded && !this.isClosed) {
      const view = this.stream.peek();
      if (view !== undefined) this.stream.consume(view.length);
      else await this.turn('its end');
    }
    this.stream.close();
    while (!this.isClosed) await setImmediate();
  }
}

class Areas {
  private sent = 0;
  private received = 0;

  constructor(
    private readonly bytes: Bytes,
    private readonly own: Iomap,
    private readonly sizeBytes: number,
  ) {}

  /** What the peer verifies goes on from one transfer that ends a turn to the next. */
  async write(transfers: number, marker: number): Promise<void> {
    const area = new Uint8Array(this.sizeBytes);
    for (let n = 0; n < transfers - 1; n++) {
      area[this.sizeBytes - 1] = (marker + 0xff) & 0xff;
      await this.bytes.writeArea(area);
    }
    for (let i = 0; i < this.sizeBytes - 1; i++) area[i] = this.sent++;
    area[this.sizeBytes - 1] = marker;
    await this.bytes.writeArea(area);
  }

  async take(marker: number): Promise<void> {
    const area = this.own.bytes;
    while (area[this.sizeBytes - 1] !== marker) await this.bytes.turn(`marker ${marker}`);
    for (let i = 0; i < this.sizeBytes - 1; i++, this.received++) {
      if (area[i] !== (this.received & 0xff))
        throw new Error(`byte ${this.received} is ${area[i]}`);
    }
  }
}

export async function runRiostream(
  stream: RsocketStream,
  { sizeBytes, transfers, rounds }: RiostreamOptions,
  isClient: boolean,
): Promise<void> {
  const bytes = new Bytes(stream);
  const own = stream.iomap({ memory: sizeBytes });
  own.bytes[sizeBytes - 1] = 0xff;
  const sync = new Uint8Array(SYNC_BYTES);
  if (isClient) await bytes.write(sync);
  await bytes.read(SYNC_BYTES);
  if (!isClient) await bytes.write(sync);
  const areas = new Areas(bytes, own, sizeBytes);
  let marker = 0;
  const next = (): number => marker++ & 0xff;
  for (let round = 0; round < rounds; round++) {
    if (isClient) await areas.write(transfers, next());
    await areas.take(next());
    if (!isClient) await areas.write(transfers, next());
  }
  await bytes.leave();
  own.unmap();
}
