/** Streams of rsockets on two adapters of mock, and what they tell, for tests. */
import assert from 'node:assert/strict';
import { type Ia, openIa } from '../../../../../core/index.js';
import { Fabric, type FabricOptions, mock } from '../../../../../providers/mock/index.js';
import {
  type After,
  rsocket,
  type RsocketListenOptions,
  type RsocketOptions,
  type RsocketProtocol,
  type RsocketStream,
} from '../../../../../samples/ulp/rsocket/index.js';
import type { ByteStreamListener, StreamError } from '../../../../../samples/ulp/socket/index.js';

export const CLIENT = '192.0.2.1';
export const SERVER = '192.0.2.2';
export const PORT = 7471;

export interface World {
  readonly fabric: Fabric;
  readonly client: Ia;
  readonly server: Ia;
  /** Virtual time, for `RsocketOptions.after`. */
  readonly after: After;
  sleep(us: number): Promise<void>;
  close(): Promise<void>;
}

export async function worldOf(options: FabricOptions = {}): Promise<World> {
  const fabric = new Fabric({ seed: 1, autoRun: true, ...options });
  const { clock } = fabric;
  const client = await openIa(mock({ fabric, address: CLIENT }));
  const server = await openIa(mock({ fabric, address: SERVER }));
  const after: After = (ms, task) => {
    let isWanted = true;
    clock.at(clock.now() + ms * 1000, () => {
      if (isWanted) task();
    });
    return () => {
      isWanted = false;
    };
  };
  const sleep = (us: number): Promise<void> =>
    new Promise((resolve) => void clock.at(clock.now() + us, resolve));
  const close = async (): Promise<void> => {
    await Promise.all([client.close(), server.close()]);
  };
  return { fabric, client, server, after, sleep, close };
}

/** A stream, and all that it has told. */
export class Seen {
  readonly received: number[] = [];
  closed: { readonly error: StreamError | undefined } | undefined = undefined;
  /** Reads by itself what comes. */
  reads: boolean;
  private readonly waits = new Set<() => void>();

  constructor(
    readonly stream: RsocketStream,
    reads = true,
  ) {
    this.reads = reads;
    stream.start({
      onReadable: () => {
        if (this.reads) this.readAll();
        this.wake();
      },
      onClose: (error) => {
        assert.equal(this.closed, undefined, 'onClose comes once');
        this.closed = { error };
        this.wake();
      },
    });
  }

  readAll(): void {
    for (let view = this.stream.peek(); view !== undefined; view = this.stream.peek()) {
      for (const byte of view) this.received.push(byte);
      this.stream.consume(view.length);
    }
  }

  /** Resolves as `done` is called; rejects with its error. */
  write(...chunks: readonly Uint8Array[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.stream.write(chunks, (error) => (error ? reject(error) : resolve()));
    });
  }

  shutdown(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.stream.shutdown((error) => (error ? reject(error) : resolve()));
    });
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.waits.delete(wake);
          resolve();
        };
        this.waits.add(wake);
      });
    }
  }

  /** Its end, which it waits for. */
  async end(): Promise<StreamError | undefined> {
    await this.until(() => this.closed !== undefined);
    return this.closed?.error;
  }

  private wake(): void {
    for (const wake of [...this.waits]) wake();
  }
}

export function listening(
  protocol: RsocketProtocol,
  onStream: (stream: RsocketStream) => void,
  options: Partial<RsocketListenOptions> = {},
): Promise<ByteStreamListener> {
  return protocol.listen({
    ...{ port: PORT, backlog: 8, admit: () => true, onStream },
    onError: (error) => assert.fail(error),
    ...options,
  });
}

export interface Pair extends World {
  readonly near: Seen;
  readonly far: Seen;
  readonly listener: ByteStreamListener;
}

/** A connection; both sides read by themselves, unless `reads` is false. */
export async function pairOf(
  options: RsocketOptions = {},
  fabric: FabricOptions = {},
  reads = true,
): Promise<Pair> {
  const world = await worldOf(fabric);
  const given = { after: world.after, ...options };
  let accepted: (seen: Seen) => void;
  const coming = new Promise<Seen>((resolve) => (accepted = resolve));
  const listener = await listening(rsocket(world.server, given), (stream) =>
    accepted(new Seen(stream, reads)),
  );
  const stream = await rsocket(world.client, given).connect({ address: SERVER, port: PORT });
  const near = new Seen(stream, reads);
  return { ...world, near, far: await coming, listener };
}

/** Objects of an adapter beyond its own event dispatcher. */
export function leftOf(ia: Ia): string {
  const { eps, lmrs, pzs, evds, psps } = JSON.parse(JSON.stringify(ia)) as Record<string, number>;
  return `eps ${eps} lmrs ${lmrs} pzs ${pzs} evds ${evds} psps ${psps}`;
}

export const NOTHING_LEFT = 'eps 0 lmrs 0 pzs 0 evds 1 psps 0';

/** Bytes that count: so what is lost, doubled or out of order shows. */
export function counted(from: number, count: number): Uint8Array {
  return Uint8Array.from({ length: count }, (_, i) => (from + i) % 251);
}
