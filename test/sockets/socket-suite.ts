/** What sockets do over any byte-stream protocol, as those of node:net. */
import assert from 'node:assert/strict';
import { createHash, randomFillSync } from 'node:crypto';
import { once } from 'node:events';
import { isIP } from 'node:net';
import { RdmaServer, RdmaSocket } from '../../samples/ulp/socket/index.js';
import { patience } from '../support/patience.js';
import {
  closed,
  connected,
  dial,
  failureOf,
  inWorld,
  listening,
  type OpenWorld,
  textOf,
} from './world.js';

/** Bytes that differ, of a length that no ring or chunk is a multiple of. */
const MANY = randomFillSync(Buffer.alloc(3_000_017));

const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

export function describeSockets(name: string, open: OpenWorld): void {
  describe(`sockets over ${name}`, () => {
    it(
      'connect, and say where they are',
      inWorld(open, async (world) => {
        const { server, port } = await listening(world);
        assert.equal(server.listening, true);
        const family = `IPv${isIP(world.address)}`;
        assert.deepEqual(server.address(), { address: world.address, family, port });
        const client = new RdmaSocket({ protocol: world.client });
        assert.equal(client.pending, true);
        assert.deepEqual(client.address(), {});
        const events: string[] = [];
        for (const event of ['lookup', 'connect', 'ready', 'end', 'close']) {
          client.on(event, () => events.push(event));
        }
        assert.equal(client.connect({ host: world.address, port }), client);
        assert.equal(client.connecting, true);
        assert.equal(client.readyState, 'opening');
        const [[served]] = await Promise.all([
          once(server, 'connection') as Promise<[RdmaSocket]>,
          once(client, 'ready'),
        ]);
        assert.deepEqual(
          [client.connecting, client.pending, client.readyState],
          [false, false, 'open'],
        );
        assert.deepEqual(
          [client.remoteAddress, client.remotePort, client.remoteFamily],
          [world.address, port, family],
        );
        assert.deepEqual([served.localAddress, served.localPort], [world.address, port]);
        assert.ok(client.localPort! > 0, 'a port of its own');
        assert.deepEqual(
          [served.remoteAddress, served.remotePort, served.remoteFamily],
          [client.localAddress, client.localPort, client.localFamily],
        );
        assert.deepEqual(client.address(), {
          address: client.localAddress,
          family,
          port: client.localPort,
        });
        served.end();
        client.resume();
        served.resume();
        const [[hadError]] = (await Promise.all([
          once(client, 'close'),
          once(served, 'close'),
        ])) as [[boolean], unknown];
        assert.equal(hadError, false);
        assert.equal(client.readyState, 'closed');
        assert.deepEqual(events, ['connect', 'ready', 'end', 'close']);
        await closed(server);
        assert.equal(server.address(), null);
      }),
    );

    it(
      'carry what was written before the connection was there',
      inWorld(open, async (world) => {
        const { server, port } = await listening(world, (socket) => socket.pipe(socket));
        const client = dial(world, port);
        const isWritten = new Promise((resolve) => client.write('one ', resolve));
        client.end('two');
        assert.equal(client.bytesWritten, 7);
        assert.equal(await textOf(client), 'one two');
        await isWritten;
        assert.deepEqual([client.bytesRead, client.bytesWritten], [7, 7]);
        await closed(server);
      }),
    );

    it(
      'carry many bytes both ways at a time, in order, with backpressure',
      inWorld(open, async (world) => {
        const { server, port } = await listening(world, (socket) => socket.pipe(socket));
        const client = dial(world, port);
        const hash = createHash('sha256');
        const received = (async () => {
          for await (const chunk of client) hash.update(chunk as Buffer);
        })();
        for (let at = 0; at < MANY.length; at += 40_001) {
          if (!client.write(MANY.subarray(at, at + 40_001))) await once(client, 'drain');
        }
        client.end();
        await received;
        assert.equal(hash.digest('hex'), digest(MANY));
        assert.deepEqual([client.bytesRead, client.bytesWritten], [MANY.length, MANY.length]);
        await closed(server);
      }),
    );

    it(
      'hold a writer back whose reader does not read, and lose nothing',
      inWorld(open, async (world) => {
        const { client, served, server } = await connected(world);
        served.pause();
        let written = 0;
        client.write(MANY, () => (written = MANY.length));
        await new Promise((resolve) => setTimeout(resolve, 50));
        assert.equal(written, 0);
        assert.ok(client.writableLength > 0);
        client.end();
        const chunks: Buffer[] = [];
        for await (const chunk of served) chunks.push(chunk as Buffer);
        assert.equal(digest(Buffer.concat(chunks)), digest(MANY));
        assert.equal(written, MANY.length);
        client.resume();
        await closed(server);
      }),
    );

    it(
      'join what was written while corked',
      inWorld(open, async (world) => {
        const { client, served, server } = await connected(world);
        client.cork();
        for (const word of ['a', 'b', '', 'c']) client.write(word);
        client.uncork();
        client.end();
        assert.equal(await textOf(served), 'abc');
        await closed(server);
      }),
    );

    it(
      'go on sending behind the end of the peer, where half-open is allowed',
      inWorld(open, async (world) => {
        const { client, served, server } = await connected(world, { allowHalfOpen: true });
        client.end('question');
        assert.equal(await textOf(served), 'question');
        assert.equal(served.readyState, 'writeOnly');
        await new Promise((resolve) => setImmediate(resolve));
        served.end('answer');
        assert.equal(await textOf(client), 'answer');
        await closed(server);
      }),
    );

    it(
      'end with the peer where it is not, and refuse what is written then',
      inWorld(open, async (world) => {
        const { client, served, server } = await connected(world);
        const failure = failureOf(client);
        client.once('end', () => assert.equal(client.write('late'), false));
        client.resume();
        served.end();
        served.resume();
        assert.equal((await failure).error.code, 'EPIPE');
        await closed(server);
      }),
    );

    it(
      'are refused where nothing listens, in the words of Node',
      inWorld(open, async (world) => {
        const { server, port } = await listening(world);
        await closed(server);
        const client = dial(world, port);
        const { error, hadError } = await failureOf(client);
        const { code, syscall, errno } = error;
        assert.deepEqual([code, syscall, errno], ['ECONNREFUSED', 'connect', -111]);
        assert.deepEqual(
          [Reflect.get(error, 'address'), Reflect.get(error, 'port')],
          [world.address, port],
        );
        assert.equal(hadError, true);
        assert.equal(client.destroyed, true);
      }),
    );

    it(
      'reset the peer when they are told to',
      inWorld(open, async (world) => {
        const { client, served, server } = await connected(world);
        served.resume();
        const reset = once(served, 'error') as Promise<[NodeJS.ErrnoException]>;
        client.resetAndDestroy();
        assert.equal((await reset)[0].code, 'ECONNRESET');
        await closed(server);
      }),
    );

    it(
      'that are destroyed while the peer writes reset it',
      inWorld(open, async (world) => {
        const { client, served, server } = await connected(world);
        served.resume();
        const reset = once(served, 'error') as Promise<[NodeJS.ErrnoException]>;
        served.write(Buffer.alloc(16 * 1024 * 1024));
        await once(client, 'readable');
        client.destroy();
        assert.equal((await reset)[0].code, 'ECONNRESET');
        await closed(server);
      }),
    );

    it(
      'that were paused read what came before the peer was gone, then ECONNRESET',
      inWorld(open, async (world) => {
        const { client, served, server } = await connected(world);
        const words = MANY.subarray(0, 50_000);
        client.write(words);
        await once(served, 'readable');
        while (served.readableLength < words.length) {
          served.read(0);
          await new Promise(setImmediate);
        }
        client.resetAndDestroy();
        await once(client, 'close');
        while (!served.isBroken) await new Promise(setImmediate);
        const failure = failureOf(served);
        const chunks: Buffer[] = [];
        served.on('data', (chunk: Buffer) => chunks.push(chunk)).resume();
        const { error, hadError } = await failure;
        assert.deepEqual([error.code, hadError], ['ECONNRESET', true]);
        assert.equal(digest(Buffer.concat(chunks)), digest(words));
        await closed(server);
      }),
    );

    it(
      'send what was written before destroySoon',
      inWorld(open, async (world) => {
        const { client, served, server } = await connected(world);
        client.write(MANY);
        client.destroySoon();
        const chunks: Buffer[] = [];
        for await (const chunk of served) chunks.push(chunk as Buffer);
        assert.equal(digest(Buffer.concat(chunks)), digest(MANY));
        await closed(server);
      }),
    );

    it(
      'close when they are destroyed, and so does the peer',
      inWorld(open, async (world) => {
        const { client, served, server } = await connected(world);
        served.on('error', () => undefined);
        served.resume();
        client.destroy();
        assert.equal(client.destroyed, true);
        const [[hadError]] = (await Promise.all([
          once(client, 'close'),
          once(served, 'close'),
        ])) as [[boolean], unknown];
        assert.equal(hadError, false);
        await closed(server);
      }),
    );

    it(
      'say when nothing has happened for a time',
      inWorld(open, async (world) => {
        const { client, served, server } = await connected(world);
        client.setTimeout(20);
        assert.equal(client.timeout, 20);
        await once(client, 'timeout');
        assert.equal(client.destroyed, false);
        client.setTimeout(0);
        served.end();
        client.end();
        client.resume();
        served.resume();
        await closed(server);
      }),
    );

    it(
      'give up when their signal fires, connected or not',
      inWorld(open, async (world) => {
        const { server, port } = await listening(world, (socket) => socket.on('error', () => {}));
        const aborted = new AbortController();
        aborted.abort();
        const never = dial(world, port, { signal: aborted.signal });
        assert.equal((await failureOf(never)).error.name, 'AbortError');
        const controller = new AbortController();
        const client = dial(world, port, { signal: controller.signal });
        await once(client, 'connect');
        const failure = failureOf(client);
        controller.abort();
        assert.equal((await failure).error.code, 'ABORT_ERR');
        await closed(server);
      }),
    );

    it(
      'are as many as there is room for',
      inWorld(open, async (world) => {
        const { server, port } = await listening(world, (socket) => socket.resume());
        server.maxConnections = 1;
        const first = dial(world, port);
        await Promise.all([once(first, 'connect'), once(server, 'connection')]);
        const dropped = once(server, 'drop') as Promise<[{ remoteAddress: string }]>;
        const { error } = await failureOf(dial(world, port));
        assert.equal(error.code, 'ECONNREFUSED');
        assert.equal((await dropped)[0].remoteAddress, first.localAddress);
        first.end();
        first.resume();
        await once(first, 'close');
        await closed(server);
      }),
    );

    it(
      'are many at a time, each with its own bytes',
      inWorld(open, async (world) => {
        const { server, port } = await listening(world, (socket) => socket.pipe(socket));
        const texts = Array.from({ length: 20 }, (_, i) => `${i} `.repeat(5000 + i));
        const echoed = await Promise.all(
          texts.map((text) => {
            const client = dial(world, port);
            client.end(text);
            return textOf(client);
          }),
        );
        assert.deepEqual(echoed.map(digestOfText), texts.map(digestOfText));
        await closed(server);
      }),
    );

    it(
      'are paused from the start where the server wants it',
      inWorld(open, async (world) => {
        const { server, port } = await listening(world, undefined, { pauseOnConnect: true });
        const client = dial(world, port);
        client.end('later');
        const [served] = (await once(server, 'connection')) as [RdmaSocket];
        assert.equal(served.isPaused(), true);
        assert.equal(await textOf(served), 'later');
        client.resume();
        await closed(server);
      }),
    );

    it(
      'keep a port to one server, which may listen again',
      inWorld(open, async (world) => {
        const { server, port } = await listening(world);
        const second = new RdmaServer({ protocol: world.server });
        const failed = once(second, 'error') as Promise<[NodeJS.ErrnoException]>;
        second.listen({ port, host: world.address });
        const [error] = await failed;
        assert.deepEqual([error.code, error.syscall, error.errno], ['EADDRINUSE', 'listen', -98]);
        assert.equal(second.listening, false);
        await closed(server);
        second.listen({ port, host: world.address });
        await once(second, 'listening');
        assert.throws(() => second.listen(0), { code: 'ERR_SERVER_ALREADY_LISTEN' });
        await closed(second);
        const notRunning = await new Promise((resolve) => second.close(resolve));
        assert.equal((notRunning as NodeJS.ErrnoException).code, 'ERR_SERVER_NOT_RUNNING');
      }),
    );

    it(
      'are found by name',
      inWorld(open, async (world) => {
        const { server, port } = await listening(world, (socket) => socket.end('hello'));
        const client = new RdmaSocket({ protocol: world.client });
        const lookups: unknown[] = [];
        client.on('lookup', (error, address, family, host) =>
          lookups.push([error, address, family, host]),
        );
        client.connect({
          host: 'peer.test',
          port,
          lookup: (_host, _options, callback) => callback(null, world.address, 4),
        });
        assert.equal(await textOf(client), 'hello');
        assert.deepEqual(lookups, [[null, world.address, 4, 'peer.test']]);
        await closed(server);
      }),
    );

    it(
      'of a server that listens no more live on',
      inWorld(open, async (world) => {
        const { client, served, server } = await connected(world);
        let isClosed = false;
        const end = closed(server).then(() => (isClosed = true));
        await new Promise((resolve) => setImmediate(resolve));
        client.end('still here');
        assert.equal(await textOf(served), 'still here');
        assert.equal(isClosed, false);
        client.resume();
        await end;
      }),
    ).timeout(patience(20_000));

    it(
      'connect once',
      inWorld(open, async (world) => {
        const { server, port } = await listening(world, (socket) => socket.resume());
        const client = dial(world, port);
        assert.throws(() => client.connect(port), { code: 'EISCONN' });
        await Promise.all([once(client, 'connect'), once(server, 'connection')]);
        assert.throws(() => client.connect(port), { code: 'EISCONN' });
        client.end();
        client.resume();
        await closed(server);
      }),
    );
  });
}

function digestOfText(text: string): string {
  return digest(Buffer.from(text));
}
