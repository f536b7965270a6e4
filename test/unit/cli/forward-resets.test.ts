// `dapl forward`: a reset is passed on as a reset, wherever it meets the bytes.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Adapters } from '../../../plugins/cli/forward/adapters.js';
import type { Endpoint } from '../../../plugins/cli/forward/endpoint.js';
import { Forwarder } from '../../../plugins/cli/forward/forwarder.js';
import { hasEndedByReset } from '../../../plugins/cli/forward/resets.js';
import { loopback } from '../../support/loopback.js';
import { patience } from '../../support/patience.js';

const FAR = loopback(68, 1);
const NEAR = loopback(68, 2);
/** Where the programs of TCP are. */
const HOST = loopback(68, 3);
const MIB = 1024 * 1024;
const ROUNDS = 12;

interface Seen {
  bytes: number;
  end: 'clean' | 'reset' | undefined;
}

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function until(condition: () => boolean, what: () => string): Promise<void> {
  const end = Date.now() + patience(20_000);
  while (!condition()) {
    if (Date.now() > end) assert.fail(what());
    await later(5);
  }
}

/** A program behind the forwarders: reads so many bytes a millisecond, 0 for none. */
class Backend {
  readonly seen: Seen[] = [];
  readonly sockets: Socket[] = [];
  readonly server: Server;

  constructor(bytesPerMs: number, answer = '') {
    this.server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
      const seen: Seen = { bytes: 0, end: undefined };
      this.seen.push(seen);
      this.sockets.push(socket);
      socket.on('error', () => (seen.end ??= 'reset'));
      socket.on('end', () => (seen.end ??= hasEndedByReset(socket) ? 'reset' : 'clean'));
      if (answer !== '') socket.end(answer);
      if (bytesPerMs === 0) return;
      socket.on('data', (chunk) => {
        seen.bytes += chunk.length;
        socket.pause();
        setTimeout(() => socket.resume(), chunk.length / bytesPerMs);
      });
      socket.resume();
    });
  }

  async listen(): Promise<Endpoint> {
    this.server.listen(0, HOST);
    await once(this.server, 'listening');
    return { kind: 'tcp', host: HOST, port: (this.server.address() as AddressInfo).port };
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
  }
}

describe('dapl forward: resets', () => {
  const opened: Adapters[] = [];
  const started: Forwarder[] = [];
  let backend: Backend;
  afterEach(async () => {
    backend.close();
    for (const forwarder of started.splice(0)) {
      await forwarder.unlisten();
      await forwarder.drain(AbortSignal.abort());
    }
    await Promise.all(opened.splice(0).map((adapters) => adapters.close()));
  });

  const start = async (listen: Endpoint, to: Endpoint): Promise<Forwarder> => {
    const adapters = new Adapters('softroce', NEAR);
    opened.push(adapters);
    const ignore = (): void => undefined;
    const forwarder = await Forwarder.start({
      ...{ listen, to, adapters, bufferBytes: 192 * 1024, onTrouble: ignore, onError: ignore },
    });
    started.push(forwarder);
    return forwarder;
  };
  const tcp: Endpoint = { kind: 'tcp', host: HOST, port: 0 };
  /** Where a client connects. */
  const chain = async (isOverRdma: boolean): Promise<{ host: string; port: number }> => {
    let to = await backend.listen();
    if (isOverRdma) {
      const far = await start({ kind: 'rsocket', host: FAR, port: 0 }, to);
      to = await far.endpoint();
    }
    const near = await start(tcp, to);
    return (await near.endpoint()) as { host: string; port: number };
  };
  const allEnded = (): Promise<void> =>
    until(
      () => started.every(({ counters }) => counters.text.startsWith('0 open')),
      () => started.map(({ counters }) => counters.text).join('; '),
    );

  for (const isOverRdma of [false, true]) {
    const way = isOverRdma ? 'over rsockets' : 'from TCP to TCP';

    it(`${way}: one in the middle of 64 MB, with a slow backend`, async () => {
      backend = new Backend(20_000);
      const where = await chain(isOverRdma);
      for (let round = 0; round < ROUNDS; round++) {
        const client = connect(where).on('error', () => undefined);
        client.write(Buffer.alloc(64 * MIB));
        await until(
          () => (backend.seen[round]?.bytes ?? 0) > 100_000 + round * 50_000,
          () => 'the backend reads nothing',
        );
        client.resetAndDestroy();
        const seen = backend.seen[round]!;
        await until(
          () => seen.end !== undefined,
          () => `round ${round}: the backend has no end after ${seen.bytes} bytes`,
        );
        assert.equal(seen.end, 'reset', `round ${round}: after ${seen.bytes} bytes`);
      }
      await allEnded();
    });

    it(`${way}: one right after a small request`, async () => {
      backend = new Backend(20_000);
      const where = await chain(isOverRdma);
      for (let round = 0; round < ROUNDS; round++) {
        const client = connect(where).on('error', () => undefined);
        await once(client, 'connect');
        await new Promise((resolve) => client.write('GET /', resolve));
        if (round % 2 === 0) await later(round);
        client.resetAndDestroy();
      }
      await until(
        () => started.at(-1)!.counters.accepted === ROUNDS,
        () => started.at(-1)!.counters.text,
      );
      await allEnded();
      await until(
        () => backend.seen.every(({ end }) => end !== undefined),
        () => JSON.stringify(backend.seen),
      );
      assert.deepEqual(
        backend.seen.filter(({ end }) => end === 'clean'),
        [],
      );
    });

    it(`${way}: ends a connection that a stalled backend holds`, async () => {
      backend = new Backend(0);
      const where = await chain(isOverRdma);
      const client = connect(where).on('error', () => undefined);
      client.write(Buffer.alloc(64 * MIB));
      await until(
        () => backend.sockets.length === 1,
        () => 'the backend has no connection',
      );
      await later(300);
      client.resetAndDestroy();
      await allEnded();
    });

    it(`${way}: an end after an answer that was read is no reset`, async () => {
      backend = new Backend(20_000, 'answer');
      const where = await chain(isOverRdma);
      for (let round = 0; round < ROUNDS; round++) {
        const client = connect({ ...where, allowHalfOpen: true });
        let text = '';
        client.setEncoding('utf8').on('data', (part: string) => (text += part));
        await once(client, 'end');
        client.end(Buffer.alloc(300_000));
        await once(client, 'close');
        assert.equal(text, 'answer');
        const seen = backend.seen[round]!;
        await until(
          () => seen.end !== undefined,
          () => `round ${round}: ${seen.bytes} bytes`,
        );
        assert.deepEqual(seen, { bytes: 300_000, end: 'clean' });
      }
      await allEnded();
    });
  }
});
