// Sockets and programs over the loopback protocol of test/support, and its faults on demand.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { LookupFunction } from 'node:net';
import {
  type ConnectOptions,
  createConnection,
  type CreateConnectionOptions,
  RdmaServer,
  RdmaSocket,
  type RdmaSocketOptions,
} from '../../samples/ulp/socket/index.js';
import { LoopbackStreams } from '../support/loopback-streams.js';
import { describePrograms } from './programs-suite.js';
import { describeSockets } from './socket-suite.js';
import {
  closed,
  connected,
  dial,
  failureOf,
  listening,
  type SocketWorld,
  textOf,
} from './world.js';

interface LoopbackWorld extends SocketWorld {
  readonly client: LoopbackStreams;
}

function world(): LoopbackWorld {
  const protocol = new LoopbackStreams();
  return {
    client: protocol,
    server: protocol,
    address: '192.0.2.1',
    close: () => Promise.resolve(),
  };
}

const open = (): Promise<SocketWorld> => Promise.resolve(world());

describeSockets('loopback', open);
describePrograms('loopback', open);

describe('sockets: what the protocol tells', () => {
  it('is the error of a connect, with the code that it has', async () => {
    for (const code of ['ETIMEDOUT', 'EHOSTUNREACH', 'EPROTONOSUPPORT'] as const) {
      const here = world();
      here.client.nextConnectError = code;
      const { error } = await failureOf(dial(here, 7));
      assert.equal(error.code, code);
      assert.match(error.message, new RegExp(`^connect ${code} 192\\.0\\.2\\.1:7: `));
    }
  });

  it('of several addresses the next is tried, and all errors are told', async () => {
    const here = world();
    const { server, port } = await listening(here, (socket) => socket.end('second'));
    const lookup: LookupFunction = (_host, _options, callback) =>
      callback(null, [
        { address: '192.0.2.9', family: 4 },
        { address: '192.0.2.1', family: 4 },
      ]);
    here.client.nextConnectError = 'EHOSTUNREACH';
    const client = createConnection({ protocol: here.client, host: 'two.test', port, lookup });
    assert.equal(await textOf(client), 'second');
    await closed(server);
    here.client.nextConnectError = 'EHOSTUNREACH';
    const { error } = await failureOf(
      createConnection({ protocol: here.client, host: 'two.test', port, lookup }),
    );
    assert.equal(error.code, 'EHOSTUNREACH');
    assert.equal((error as unknown) instanceof AggregateError, true);
    assert.match(error.message, /192\.0\.2\.9.*; connect ECONNREFUSED 192\.0\.2\.1/);
  });

  it('a name that leads nowhere is the error of the resolver', async () => {
    const here = world();
    const lookup: LookupFunction = (host, _options, callback) =>
      callback(
        Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: 'ENOTFOUND' }),
        [],
      );
    const client = createConnection({ protocol: here.client, host: 'no.test', port: 7, lookup });
    assert.equal((await failureOf(client)).error.code, 'ENOTFOUND');
    const none = createConnection({
      protocol: here.client,
      host: 'none.test',
      port: 7,
      lookup: (_host, _options, callback) => callback(null, []),
    });
    const { error } = await failureOf(none);
    assert.equal(error.code, 'EHOSTUNREACH');
    assert.match(error.message, /none\.test:7: it has no address/);
  });

  it('ends an attempt that is destroyed, and the writes that wait for it', async () => {
    const here = world();
    here.client.isSilent = true;
    const client = dial(here, 7);
    const written = new Promise<Error | null | undefined>((resolve) => client.write('x', resolve));
    client.resetAndDestroy();
    assert.equal(client.connecting, false);
    await once(client, 'close');
    const code = ((await written) as NodeJS.ErrnoException | undefined)?.code;
    assert.equal(code, 'ERR_SOCKET_CLOSED_BEFORE_CONNECTION');
    assert.equal(here.client.streams.length, 0);
  });

  it('aborts a connection that comes too late', async () => {
    const here = world();
    const { server, port } = await listening(here, (socket) => socket.on('error', () => undefined));
    const client = dial(here, port);
    while (here.client.streams.length === 0) await new Promise((resolve) => setImmediate(resolve));
    client.destroy();
    await once(client, 'close');
    await closed(server);
  });

  it('a broken connection is an error; what came before goes to one that reads', async () => {
    const here = world();
    const { client, served, server } = await connected(here);
    let text = '';
    client.on('data', (chunk) => (text += String(chunk)));
    served.write('last words');
    await new Promise((resolve) => setTimeout(resolve, 5));
    const failure = failureOf(client);
    served.resetAndDestroy();
    const { error, hadError } = await failure;
    assert.deepEqual([error.code, error.syscall, hadError], ['ECONNRESET', 'read', true]);
    assert.equal(text, 'last words');
    await closed(server);
  });

  it('a write to a peer that takes no more is EPIPE', async () => {
    const here = world();
    const { client, served, server } = await connected(here, { allowHalfOpen: true });
    served.destroy();
    client.resume();
    await once(client, 'end');
    const failure = failureOf(client);
    client.write('late');
    assert.equal((await failure).error.code, 'EPIPE');
    await closed(server);
  });

  it('no more bytes are held than the reader has room for, and the stream', async () => {
    const here = world();
    const { client, served, server } = await connected(here, { readableHighWaterMark: 10_000 });
    served.pause();
    client.write(Buffer.alloc(1 << 20));
    await new Promise((resolve) => setTimeout(resolve, 20));
    const [, stream] = here.client.streams;
    assert.ok(served.readableLength <= 10_000 + 65536, String(served.readableLength));
    assert.ok(stream!.waitingBytes <= 65536, String(stream!.waitingBytes));
    served.destroy();
    client.on('error', () => undefined);
    await closed(server);
  });

  it('a write that goes on piece by piece is no idleness', async () => {
    const here = world();
    const { client, served, server } = await connected(here);
    let isIdle = false;
    client.setTimeout(60, () => (isIdle = true));
    served.pause();
    client.write(Buffer.alloc(400_000));
    const slow = setInterval(() => void served.read(), 5);
    await once(client, 'drain');
    clearInterval(slow);
    assert.equal(isIdle, false);
    served.resume();
    client.end();
    client.resume();
    await closed(server);
  });

  it('keep-alive, ref and unref reach the stream, before and after it is there', async () => {
    const here = world();
    const { server, port } = await listening(here, undefined, {
      keepAlive: true,
      keepAliveInitialDelay: 1500,
    });
    const client = dial(here, port).unref().setKeepAlive(true).setNoDelay();
    const [[served]] = (await Promise.all([
      once(server, 'connection'),
      once(client, 'connect'),
    ])) as [[RdmaSocket], unknown];
    const [here1, there1] = here.client.streams;
    assert.deepEqual([here1!.isRefed, there1!.isRefed], [false, true]);
    assert.deepEqual([here1!.keepAliveMs, there1!.keepAliveMs], [7_200_000, 1500]);
    client.ref().setKeepAlive(false);
    assert.deepEqual([here1!.isRefed, here1!.keepAliveMs], [true, 0]);
    served.setKeepAlive(true, 20.5);
    assert.equal(there1!.keepAliveMs, 20);
    client.destroy();
    served.resume();
    await closed(server);
  });

  it('what a listener throws is an uncaught exception, and the stream goes on', async () => {
    const here = world();
    const { client, served, server } = await connected(here);
    const listeners = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    const caught = once(process, 'uncaughtException') as Promise<[Error]>;
    try {
      served.once('data', () => {
        throw new Error('mine');
      });
      client.write('a');
      assert.equal((await caught)[0].message, 'mine');
    } finally {
      for (const listener of listeners) process.on('uncaughtException', listener);
    }
    client.end('b');
    assert.equal(await textOf(served), 'b');
    client.resume();
    await closed(server);
  });
});

describe('sockets: what callers may get wrong', () => {
  const protocol = new LoopbackStreams();
  const wrong: readonly (readonly [() => unknown, string, RegExp])[] = [
    [
      () => createConnection({ protocol } as unknown as CreateConnectionOptions),
      'ERR_MISSING_ARGS',
      /port is missing; sockets over RDMA connect to a port from 1 to 65535/,
    ],
    [() => socket().connect(0), 'ERR_SOCKET_BAD_PORT', /port is 0; it must be an integer from 1/],
    [() => socket().connect(65536), 'ERR_SOCKET_BAD_PORT', /port is 65536; .* to 65535/],
    [() => socket().connect('http'), 'ERR_SOCKET_BAD_PORT', /port is NaN; it must be/],
    [() => socket().connect({ port: 7, host: '' }), 'ERR_INVALID_ARG_TYPE', /host is ""; it must/],
    [
      () => socket().connect({ port: 7, family: 5 as 4 }),
      'ERR_INVALID_ARG_TYPE',
      /family is 5; it must be one of 0, 4, 6/,
    ],
    [
      () => socket().connect({ port: 7, path: '/run/x' } as ConnectOptions),
      'ERR_INVALID_ARG_TYPE',
      /path is given; sockets over RDMA have host and port/,
    ],
    [
      () => socket().setTimeout(-1),
      'ERR_OUT_OF_RANGE',
      /timeout is -1; it must be a number from 0/,
    ],
    [() => server().listen(-1), 'ERR_SOCKET_BAD_PORT', /port is -1; it must be an integer from 0/],
    [() => server().listen({ backlog: -1 }), 'ERR_INVALID_ARG_TYPE', /backlog is -1; it must be/],
    [
      () => new RdmaSocket({ protocol, onread: {} } as RdmaSocketOptions),
      'ERR_INVALID_ARG_TYPE',
      /onread is given/,
    ],
  ];
  const socket = (): RdmaSocket => new RdmaSocket({ protocol });
  const server = (): RdmaServer => new RdmaServer({ protocol });

  for (const [call, code, message] of wrong) {
    it(`${code}: ${message.source}`, () => {
      assert.throws(call, { code, message });
    });
  }

  it('a write to a socket that never connected is ERR_SOCKET_CLOSED', async () => {
    const never = socket();
    const failure = failureOf(never);
    never.write('x');
    assert.equal((await failure).error.code, 'ERR_SOCKET_CLOSED');
  });
});

describe('servers: listening', () => {
  it('takes all forms of arguments of node:net', async () => {
    const here = world();
    const forms: readonly ((server: RdmaServer, onListening: () => void) => RdmaServer)[] = [
      (server, on) => server.listen(on),
      (server, on) => server.listen(0, on),
      (server, on) => server.listen(0, 10, on),
      (server, on) => server.listen(0, '0.0.0.0', on),
      (server, on) => server.listen(0, here.address, 10, on),
      (server, on) => server.listen({ host: '::', backlog: 0 }, on),
    ];
    for (const listen of forms) {
      const server = new RdmaServer({ protocol: here.server });
      await new Promise<void>((resolve) => listen(server, resolve));
      assert.equal(server.address()!.address, here.address);
      await server[Symbol.asyncDispose]();
      assert.equal(server.listening, false);
      await server[Symbol.asyncDispose]();
    }
  });

  it('ends with its signal, and where it is closed before it is there', async () => {
    const here = world();
    const controller = new AbortController();
    const { signal } = controller;
    const first = new RdmaServer({ protocol: here.server }).listen({ port: 7, signal });
    await once(first, 'listening');
    controller.abort();
    await once(first, 'close');
    const second = new RdmaServer({ protocol: here.server }).listen({ port: 7, signal });
    second.on('listening', () => assert.fail('it was closed'));
    await once(second, 'close');
    const third = new RdmaServer({ protocol: here.server }).listen(7);
    await once(third, 'listening');
    const fourth = new RdmaServer({ protocol: here.server }).listen(7);
    fourth.on('error', () => assert.fail('it was closed'));
    await closed(fourth);
    await closed(third);
  });

  it('counts its connections', async () => {
    const here = world();
    const { client, served, server } = await connected(here);
    const count = (): Promise<number> =>
      new Promise((resolve) =>
        server.getConnections((_error, connections) => resolve(connections)),
      );
    assert.equal(await count(), 1);
    client.end();
    client.resume();
    served.resume();
    await once(served, 'close');
    assert.equal(await count(), 0);
    await closed(server);
  });
});
