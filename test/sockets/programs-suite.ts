/** Programs for node:net, unchanged over sockets of any byte-stream protocol. */
import assert from 'node:assert/strict';
import { createHash, randomFillSync } from 'node:crypto';
import { once } from 'node:events';
import * as http from 'node:http';
import * as http2 from 'node:http2';
import * as https from 'node:https';
import { createInterface } from 'node:readline';
import { Duplex, PassThrough, Readable, Transform, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import * as tls from 'node:tls';
import { createGunzip, createGzip } from 'node:zlib';
import { RdmaAgent, RdmaSecureAgent, type RdmaServer } from '../../samples/ulp/socket/index.js';
import { closed, connected, dial, inWorld, listening, type OpenWorld } from './world.js';

/** A key that both sides know: TLS without a certificate. */
const PSK = {
  ciphers: 'PSK-AES128-GCM-SHA256',
  maxVersion: 'TLSv1.2',
  minVersion: 'TLSv1.2',
} as const;
const KEY = Buffer.from('0123456789abcdef');
const SERVER_PSK = { ...PSK, pskCallback: () => KEY, pskIdentityHint: 'dapl' };
const CLIENT_PSK = {
  ...PSK,
  pskCallback: () => ({ psk: KEY, identity: 'test' }),
  checkServerIdentity: () => undefined,
};

const BODY = randomFillSync(Buffer.alloc(1_000_003));

interface Answer {
  readonly status: number | undefined;
  readonly body: Buffer;
  readonly wasReused: boolean;
}

/** Sends a request through `http.request` or `https.request`. */
async function ask(request: http.ClientRequest, body?: Uint8Array): Promise<Answer> {
  request.end(body);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return {
    status: response.statusCode,
    body: Buffer.concat(chunks),
    wasReused: request.reusedSocket,
  };
}

/** Answers with the body of the request. */
const mirror: http.RequestListener = (request, response) => {
  response.setHeader('x-peer', String(request.socket.remoteAddress));
  request.pipe(response);
};

export function describePrograms(name: string, open: OpenWorld): void {
  describe(`programs of node:net over ${name}`, () => {
    it(
      'http.createServer and http.request through an agent',
      inWorld(open, async (world) => {
        const app = http.createServer(mirror);
        const { server, port } = await listening(world, (socket) => app.emit('connection', socket));
        const agent = new RdmaAgent(world.client);
        const url = { agent, host: world.address, port, path: '/echo', method: 'POST' };
        const answer = await ask(http.request(url), BODY);
        assert.equal(answer.status, 200);
        assert.ok(answer.body.equals(BODY));
        agent.destroy();
        await stopped(server, app);
      }),
    );

    it(
      'http with keep-alive: one connection for many requests',
      inWorld(open, async (world) => {
        let connections = 0;
        const app = http.createServer(mirror);
        const { server, port } = await listening(world, (socket) => {
          connections++;
          app.emit('connection', socket);
        });
        const agent = new RdmaAgent(world.client, { keepAlive: true, maxSockets: 1 });
        const url = { agent, host: world.address, port, method: 'POST' };
        for (const i of [0, 1, 2, 3]) {
          const answer = await ask(http.request(url), Buffer.from(`request ${i}`));
          assert.equal(answer.body.toString(), `request ${i}`);
          assert.equal(answer.wasReused, i > 0);
        }
        const answers = await Promise.all(
          ['one', 'two', 'three'].map((text) => ask(http.request(url), Buffer.from(text))),
        );
        assert.deepEqual(
          answers.map(({ body }) => body.toString()),
          ['one', 'two', 'three'],
        );
        assert.equal(connections, 1);
        agent.destroy();
        await stopped(server, app);
      }),
    );

    it(
      "http upgrades, and the socket is the program's then",
      inWorld(open, async (world) => {
        const app = http.createServer();
        app.on('upgrade', (_request, socket: Duplex) => {
          socket.write(
            'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
          );
          socket.pipe(socket);
        });
        const { server, port } = await listening(world, (socket) => app.emit('connection', socket));
        const request = http.request({
          agent: new RdmaAgent(world.client),
          host: world.address,
          port,
          headers: { connection: 'upgrade', upgrade: 'x' },
        });
        request.end();
        const [, socket] = (await once(request, 'upgrade')) as [unknown, Duplex];
        socket.end('words');
        let text = '';
        for await (const part of socket) text += String(part);
        assert.equal(text, 'words');
        await stopped(server, app);
      }),
    );

    it(
      'http: a request that is given up leaves the server whole',
      inWorld(open, async (world) => {
        const app = http.createServer((request, response) => {
          if (request.url === '/slow') return;
          response.end('quick');
        });
        const { server, port } = await listening(world, (socket) => app.emit('connection', socket));
        const agent = new RdmaAgent(world.client);
        const controller = new AbortController();
        const { signal } = controller;
        const at = { agent, host: world.address, port };
        const slow = http.request({ ...at, path: '/slow', signal });
        const gone = once(slow, 'error');
        const asked = once(app, 'request') as Promise<[http.IncomingMessage]>;
        slow.end();
        const [request] = await asked;
        const closes = once(request.socket, 'close');
        controller.abort();
        await gone;
        await closes;
        const answer = await ask(http.request({ ...at, path: '/quick' }));
        assert.equal(answer.body.toString(), 'quick');
        await stopped(server, app);
      }),
    );

    it(
      'http: a timeout of the client destroys its socket',
      inWorld(open, async (world) => {
        const app = http.createServer(() => undefined);
        const { server, port } = await listening(world, (socket) => app.emit('connection', socket));
        const agent = new RdmaAgent(world.client);
        const request = http.request({ agent, host: world.address, port, timeout: 30 });
        request.end();
        await once(request, 'timeout');
        request.destroy(new Error('too slow'));
        const [error] = (await once(request, 'error').catch((cause: unknown) => [cause])) as [
          Error,
        ];
        assert.equal(error.message, 'too slow');
        await stopped(server, app);
      }),
    );

    it(
      'http2: many streams of a session',
      inWorld(open, async (world) => {
        const app = http2.createServer();
        app.on('stream', (stream) => {
          stream.respond({ ':status': 200 });
          stream.pipe(stream);
        });
        const { server, port } = await listening(world, (socket) => app.emit('connection', socket));
        const session = http2.connect(`http://localhost:${port}`, {
          createConnection: () => dial(world, port),
        });
        const bodies = await Promise.all(
          Array.from({ length: 5 }, async (_, i) => {
            const stream = session.request({ ':method': 'POST' });
            stream.end(BODY.subarray(0, 100_000 + i));
            const chunks: Buffer[] = [];
            for await (const chunk of stream) chunks.push(chunk as Buffer);
            return Buffer.concat(chunks);
          }),
        );
        for (const [i, body] of bodies.entries()) {
          assert.ok(body.equals(BODY.subarray(0, 100_000 + i)));
        }
        session.close();
        await once(session, 'close');
        app.close();
        await closed(server);
      }),
    );

    it(
      'tls on both sides',
      inWorld(open, async (world) => {
        const secured = tls.createServer({ ...SERVER_PSK, allowHalfOpen: true }, (socket) =>
          socket.pipe(socket),
        );
        const halfOpen = { allowHalfOpen: true };
        const { server, port } = await listening(
          world,
          (socket) => secured.emit('connection', socket),
          halfOpen,
        );
        const client = tls.connect({ ...CLIENT_PSK, socket: dial(world, port, halfOpen) });
        await once(client, 'secureConnect');
        assert.equal(client.getProtocol(), 'TLSv1.2');
        client.end(BODY);
        const chunks: Buffer[] = [];
        for await (const chunk of client) chunks.push(chunk as Buffer);
        assert.equal(Buffer.concat(chunks).length, BODY.length);
        assert.ok(Buffer.concat(chunks).equals(BODY));
        await closed(server);
      }),
    );

    it(
      'https through an agent, and keep-alive',
      inWorld(open, async (world) => {
        const app = https.createServer(SERVER_PSK, mirror);
        const { server, port } = await listening(world, (socket) => app.emit('connection', socket));
        const agent = new RdmaSecureAgent(world.client, { ...CLIENT_PSK, keepAlive: true });
        const url = { agent, host: world.address, port, method: 'POST' };
        const first = await ask(https.request(url), BODY);
        assert.ok(first.body.equals(BODY));
        const second = await ask(https.request(url), Buffer.from('again'));
        assert.equal(second.body.toString(), 'again');
        assert.equal(second.wasReused, true);
        agent.destroy();
        await stopped(server, app);
      }),
    );

    it(
      'stream.pipeline, with transforms at both ends',
      inWorld(open, async (world) => {
        const { client, served, server } = await connected(world);
        const hash = createHash('sha256');
        client.resume();
        await Promise.all([
          pipeline(Readable.from([BODY, BODY]), createGzip({ level: 1 }), client),
          pipeline(served, createGunzip(), hash),
        ]);
        const expected = createHash('sha256').update(BODY).update(BODY).digest('hex');
        assert.equal(hash.digest('hex'), expected);
        served.destroy();
        await closed(server);
      }),
    );

    it(
      'stream.pipeline: what breaks at one end is an error at the other',
      inWorld(open, async (world) => {
        const { client, served, server } = await connected(world);
        const broken = new Transform({
          transform: (_chunk, _encoding, done) => done(new Error('no more')),
        });
        client.on('error', () => undefined);
        const writing = pipeline(Readable.from([BODY, BODY]), client);
        await assert.rejects(pipeline(served, broken, new PassThrough()), /no more/);
        await assert.rejects(writing, { code: /^(EPIPE|ECONNRESET|ERR_STREAM_PREMATURE_CLOSE)$/ });
        await closed(server);
      }),
    );

    it(
      'readline: a dialogue by lines',
      inWorld(open, async (world) => {
        const { client, served, server } = await connected(world);
        const lines = createInterface({ input: served });
        lines.on('line', (line) => served.write(`${line.toUpperCase()}\n`));
        const answers = createInterface({ input: client });
        const heard: string[] = [];
        client.write('first\nsec');
        client.write('ond\n');
        for await (const line of answers) {
          heard.push(line);
          if (heard.length === 2) client.end();
        }
        assert.deepEqual(heard, ['FIRST', 'SECOND']);
        await closed(server);
      }),
    );

    it(
      'web streams, by Duplex.toWeb',
      inWorld(open, async (world) => {
        const { server, port } = await listening(world, (socket) => socket.pipe(socket));
        const client = dial(world, port);
        await once(client, 'connect');
        const web = Duplex.toWeb(client);
        const sent = (async () => {
          const writer = web.writable.getWriter();
          for (let at = 0; at < BODY.length; at += 70_000) {
            await writer.write(BODY.subarray(at, at + 70_000));
          }
          await writer.close();
        })();
        const chunks: Buffer[] = [];
        for await (const chunk of web.readable) chunks.push(Buffer.from(chunk as Uint8Array));
        await sent;
        assert.ok(Buffer.concat(chunks).equals(BODY));
        await closed(server);
      }),
    );

    it(
      'web streams, piped from one to another',
      inWorld(open, async (world) => {
        const { client, served, server } = await connected(world);
        client.end(BODY);
        const chunks: Buffer[] = [];
        await Readable.toWeb(served).pipeTo(
          Writable.toWeb(
            new Writable({
              write: (chunk: Buffer, _encoding, done) => {
                chunks.push(chunk);
                done();
              },
            }),
          ),
        );
        assert.ok(Buffer.concat(chunks).equals(BODY));
        client.resume();
        await closed(server);
      }),
    );
  });
}

/** The application and its server, with the connections that are kept alive. */
async function stopped(server: RdmaServer, app: http.Server): Promise<void> {
  app.closeAllConnections();
  await closed(server);
}
