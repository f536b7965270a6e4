// `dapl forward` as a program: what goes in at one end comes out at the other, and how it ends.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomFillSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bytesText } from '../../../plugins/cli/forward/forwarder.js';
import { endpointOf, endpointText } from '../../../plugins/cli/forward/endpoint.js';
import { longIt } from '../../support/lane.js';
import { loopback } from '../../support/loopback.js';

const MAIN = fileURLToPath(import.meta.resolve('../../../plugins/cli/main.js'));
const SERVER_SIDE = loopback(62, 1);
const CLIENT_SIDE = loopback(62, 2);
/** Where programs of TCP are. */
const HOST = loopback(62, 3);
const MANY = randomFillSync(Buffer.alloc(2_000_003));

/** The program, and what it says. */
class Forward {
  readonly ended: Promise<number | null>;
  said = '';
  private readonly child: ChildProcess;

  constructor(...args: readonly string[]) {
    this.child = spawn(process.execPath, [MAIN, 'forward', ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.said += text));
    this.ended = once(this.child, 'close').then(([code]) => code as number | null);
  }

  /** @throws Error when it ends without saying that */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.said);
      if (match !== null) return match;
      const ended = await Promise.race([
        once(this.child.stderr!, 'data').then(() => false),
        this.ended.then(() => true),
      ]);
      if (ended && !pattern.test(this.said)) {
        throw new Error(`ended without ${String(pattern)}: ${this.said}`);
      }
    }
  }

  /** The port that it listens on. */
  async port(): Promise<number> {
    return Number((await this.says(/listening on \S+:(\d+),/))[1]);
  }

  get residentBytes(): number {
    const status = readFileSync(`/proc/${this.child.pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)![1]) * 1024;
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** If it has not ended. */
  kill(): void {
    this.child.kill('SIGKILL');
  }
}

function serve(onSocket: (socket: Socket) => void, where: object): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined);
    onSocket(socket);
  });
  return new Promise((resolve) => server.listen(where, () => resolve(server)));
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

/** Sends, ends, and reads what comes until the end. */
async function exchange(where: object, bytes: Uint8Array): Promise<Buffer> {
  const socket = connect({ ...(where as { port: number }), allowHalfOpen: true });
  socket.end(bytes);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

describe('dapl forward', () => {
  let folder: string;
  let upstream: Server | undefined;
  const programs: Forward[] = [];
  const start = (...args: readonly string[]): Forward => {
    const program = new Forward(...args);
    programs.push(program);
    return program;
  };
  /** From TCP or a Unix socket over rsockets to `to`: two programs. */
  const chain = async (listen: string, to: string): Promise<[Forward, Forward]> => {
    const far = start('--listen', `rsocket:${SERVER_SIDE}:0`, '--to', to);
    const rsocket = `rsocket:${SERVER_SIDE}:${await far.port()}`;
    const near = start('--listen', listen, '--to', rsocket, '--from', CLIENT_SIDE);
    return [near, far];
  };
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'dapl-forward-'))));
  afterEach(async () => {
    for (const program of programs) program.kill();
    await Promise.all(programs.splice(0).map(({ ended }) => ended));
    upstream?.close();
    upstream = undefined;
    rmSync(folder, { recursive: true });
  });

  it('carries TCP over rsockets, both ways, with the end of each, and counts', async () => {
    upstream = await serve((socket) => socket.pipe(socket), { port: 0, host: HOST });
    const [near, far] = await chain(`tcp:${HOST}:0`, `tcp:${HOST}:${portOf(upstream)}`);
    const where = { port: await near.port(), host: HOST };
    assert.ok((await exchange(where, MANY)).equals(MANY));
    const both = await Promise.all(['a', 'b'].map((text) => exchange(where, Buffer.from(text))));
    assert.deepEqual(both.map(String), ['a', 'b']);
    for (const program of [near, far]) program.signal('SIGTERM');
    assert.deepEqual(await Promise.all([near.ended, far.ended]), [0, 0]);
    const line = /0 open of 3, 0 refused, 0 broken, 1\.91 MiB forth, 1\.91 MiB back\n$/;
    assert.match(near.said, line);
    assert.match(far.said, line);
  });

  it('carries Unix sockets, at both ends', async () => {
    const [front, back] = [join(folder, 'front'), join(folder, 'back')];
    upstream = await serve((socket) => socket.pipe(socket), { path: back });
    const [near] = await chain(`unix:${front}`, `unix:${back}`);
    await near.says(/listening on unix:/);
    assert.ok((await exchange({ path: front }, MANY)).equals(MANY));
  });

  it('says why a connection is refused, and resets the one that has come', async () => {
    upstream = await serve(() => undefined, { port: 0, host: HOST });
    const [near, far] = await chain(`tcp:${HOST}:0`, `tcp:${HOST}:${portOf(upstream)}`);
    const where = { port: await near.port(), host: HOST };
    await new Promise((resolve) => upstream!.close(resolve));
    await assert.rejects(exchange(where, Buffer.from('x')), { code: 'ECONNRESET' });
    await far.says(/: connect ECONNREFUSED 127[.\d]+:\d+\n/);
    await near.says(/127[.\d]+:\d+: \S+ (?:ECONNRESET|EPIPE) /);
    far.signal('SIGTERM');
    assert.equal(await far.ended, 0);
    await assert.rejects(exchange(where, Buffer.from('x')), { code: 'ECONNRESET' });
    const refused = /127[.\d]+:\d+: connect E(?:CONNREFUSED|TIMEDOUT|HOSTUNREACH) .*\n/;
    await near.says(refused);
  });

  it('drains on SIGTERM: what is open goes on to its end, and no more comes', async () => {
    upstream = await serve((socket) => socket.pipe(socket), { port: 0, host: HOST });
    const [near] = await chain(`tcp:${HOST}:0`, `tcp:${HOST}:${portOf(upstream)}`);
    const where = { port: await near.port(), host: HOST };
    const socket = connect({ ...where, allowHalfOpen: true });
    socket.setEncoding('utf8').write('before ');
    assert.deepEqual(await once(socket, 'data'), ['before ']);
    near.signal('SIGTERM');
    await near.says(/accepting no more connections; open ones have 30 s to end/);
    await assert.rejects(exchange(where, Buffer.from('x')), { code: 'ECONNREFUSED' });
    socket.end('and after');
    assert.deepEqual(await once(socket, 'data'), ['and after']);
    assert.equal(await near.ended, 0);
  });

  it('cuts off what is open at a second signal, or in time, and ends with 1', async () => {
    upstream = await serve((socket) => socket.pipe(socket), { port: 0, host: HOST });
    const to = `tcp:${HOST}:${portOf(upstream)}`;
    const impatient = start('--listen', `tcp:${HOST}:0`, '--to', to, '--drain', '0.05');
    const asked = start('--listen', `tcp:${HOST}:0`, '--to', to);
    for (const program of [impatient, asked]) {
      const socket = connect({ port: await program.port(), host: HOST });
      socket.write('x');
      await once(socket, 'data');
      const reset = once(socket, 'error') as Promise<[NodeJS.ErrnoException]>;
      program.signal('SIGTERM');
      await program.says(/no more connections/);
      if (program === asked) program.signal('SIGINT');
      assert.equal((await reset)[0].code, 'ECONNRESET');
      assert.equal(await program.ended, 1);
      assert.match(program.said, /: it was cut off\n0 open of 1, 0 refused, 1 broken/);
    }
  });

  longIt('takes less than 1 MB for a connection that a stalled backend holds', async () => {
    const bytes = Buffer.alloc(8 * 1024 * 1024);
    const stalled: Socket[] = [];
    upstream = await serve((socket) => stalled.push(socket.pause()), { port: 0, host: HOST });
    const [near, far] = await chain(`tcp:${HOST}:0`, `tcp:${HOST}:${portOf(upstream)}`);
    const where = { port: await near.port(), host: HOST };
    const clients: Socket[] = [];
    /** @returns the memory of both programs when the connections are full */
    const fill = async (connections: number): Promise<number[]> => {
      for (let i = 0; i < connections; i++) {
        const client = connect(where).on('error', () => undefined);
        client.write(bytes);
        clients.push(client);
      }
      while (stalled.length < clients.length) await new Promise(setImmediate);
      await new Promise((resolve) => setTimeout(resolve, 2000));
      return [near, far].map((program) => program.residentBytes);
    };
    // The first ones bring what all connections share, many level out what V8 has not collected.
    const few = await fill(10);
    const many = await fill(80);
    for (const client of clients) client.destroy();
    for (const socket of stalled) socket.destroy();
    for (const [i, bytes] of many.entries()) {
      const each = (bytes - few[i]!) / 80;
      assert.ok(each < 1e6, `program ${i}: ${each} bytes a connection`);
    }
  });

  it('says its counters every so often', async () => {
    upstream = await serve((socket) => socket.pipe(socket), { port: 0, host: HOST });
    const to = `tcp:${HOST}:${portOf(upstream)}`;
    const program = start('--listen', `tcp:${HOST}:0`, '--to', to, '--counters', '0.02');
    await program.says(/0 open of 0, 0 refused/);
    const socket = connect({ port: await program.port(), host: HOST });
    socket.write('12345');
    await program.says(/1 open of 1, 0 refused, 0 broken, 5 B forth, 5 B back/);
    socket.end();
  });

  it('ends with 1 and a sentence where it cannot listen', async () => {
    upstream = await serve(() => undefined, { port: 0, host: HOST });
    const listen = `tcp:${HOST}:${portOf(upstream)}`;
    const program = start('--listen', listen, '--to', 'unix:/nowhere');
    assert.equal(await program.ended, 1);
    assert.match(program.said, /^dapl: listen EADDRINUSE: address already in use 127[.\d]+:\d+\n$/);
  });

  it('refuses ends that are none, with the value and what is allowed', () => {
    const wrong: readonly (readonly [string, RegExp])[] = [
      ['http://x', /"http:\/\/x": it must be tcp:HOST:PORT, rsocket:HOST:PORT or unix:PATH/],
      ['8080', /"8080": it must be tcp:HOST:PORT/],
      ['tcp:8080', /"tcp:8080": it must be tcp:HOST:PORT, an IPv6 address in brackets/],
      ['tcp:::1:80', /an IPv6 address in brackets/],
      ['tcp:host:', /its port is ""; it must be an integer from 1 to 65535/],
      ['tcp:host:0', /its port is "0"; it must be an integer from 1 to 65535/],
      ['rsocket:host:65536', /its port is "65536"; it must be an integer from 1 to 65535/],
      ['rsocket:host:1e3', /its port is "1e3"/],
      ['unix:', /its path has 0 bytes; it must have 1 to 107/],
      [`unix:/${'x'.repeat(107)}`, /its path has 108 bytes; it must have 1 to 107/],
    ];
    for (const [text, message] of wrong) {
      assert.throws(() => endpointOf(text, 1), { name: 'RangeError', message });
    }
    const run = spawnSync(
      process.execPath,
      [MAIN, 'forward', '--listen', 'tcp:x', '--to', 'unix:/x'],
      { encoding: 'utf8' },
    );
    assert.equal(run.status, 1);
    assert.match(
      run.stderr,
      /'--listen <end>' argument 'tcp:x' is invalid\. "tcp:x": it must be tcp:/,
    );
  });

  it('takes ends as they are typed', () => {
    for (const text of [`tcp:${HOST}:80`, 'rsocket:[fd00::1]:8080', 'unix:/run/x.sock']) {
      assert.equal(endpointText(endpointOf(text, 1)), text);
    }
    assert.deepEqual(endpointOf('tcp:localhost:0', 0), { kind: 'tcp', host: 'localhost', port: 0 });
  });

  it('says bytes with three digits', () => {
    const said = [0, 999, 1000, 1024, 10_240, 123_456, 5 * 2 ** 30, 3 * 2 ** 50].map(bytesText);
    const expected = ['0 B', '999 B', '0.98 KiB', '1.00 KiB', '10.0 KiB', '121 KiB', '5.00 GiB'];
    assert.deepEqual(said, [...expected, '3072 TiB']);
  });
});
