/** Requests and replies of `dapl/easy`, and a client that comes back. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  Client,
  type ClientOptions,
  type ClientState,
  connect,
  FlowError,
  type Handler,
  RemoteError,
  serve,
  type ServeOptions,
  type Server,
} from 'dapl/easy';
import { offerChannel, channel } from 'dapl/flow/channel';
import { Fabric, mock } from 'dapl/providers/mock';

const SERVER = '192.0.2.2';
const PORT = 7;
const bytesOf = (text: string): Uint8Array => Buffer.from(text);
const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

/** A fabric, and what is on it. */
class World {
  private readonly fabric = new Fabric({ seed: 9, autoRun: true });
  private readonly ends: (() => Promise<void>)[] = [];

  provider(host: number): ReturnType<typeof mock> {
    return mock({ fabric: this.fabric, address: `192.0.2.${host}` });
  }

  async serve(handler: Handler, options: Partial<ServeOptions> = {}): Promise<Server> {
    const server = await serve({ provider: this.provider(2), port: PORT, ...options }, handler);
    this.ends.push(() => server.close({ timeoutMs: 0 }));
    return server;
  }

  client(options: Partial<ClientOptions> = {}): Client {
    const client = new Client({
      ...{ provider: this.provider(1), address: SERVER, port: PORT },
      ...{ waitMs: { least: 5, most: 20 }, connectTimeoutMs: 100, ...options },
    });
    this.ends.push(() => client.close({ timeoutMs: 0 }));
    return client;
  }

  async end(): Promise<void> {
    for (const each of this.ends.splice(0).reverse()) await each();
  }
}

const codeOf =
  (code: string, text = /./) =>
  (error: unknown) => {
    assert.ok(FlowError.isFlowError(error), String(error));
    assert.equal(error.code, code);
    assert.match(error.message, text);
    return true;
  };

describe('easy: requests', () => {
  let world: World;

  beforeEach(() => {
    world = new World();
  });

  afterEach(() => world.end());

  it('get the replies of the handler, whatever order those come in', async () => {
    const gates: (() => void)[] = [];
    const server = await world.serve(async ({ bytes, peer }) => {
      assert.equal(peer, '192.0.2.1');
      await new Promise<void>((resolve) => gates.push(resolve));
      return bytesOf(`${textOf(bytes)}!`);
    });
    const client = world.client();
    const replies = ['a', 'b', 'c'].map((text) => client.request(bytesOf(text)));
    while (gates.length < 3) await sleep(1);
    assert.deepEqual([client.pendingRequests, server.running, server.connections], [3, 3, 1]);
    for (const open of gates.reverse()) open();
    assert.deepEqual((await Promise.all(replies)).map(textOf), ['a!', 'b!', 'c!']);
    assert.equal(client.pendingRequests, 0);
    while (server.running > 0) await sleep(1);
  });

  it('go in any number and length', async () => {
    await world.serve(({ bytes }) => bytes.map((byte) => byte + 1), { maxRunning: 10 });
    const client = world.client();
    const lengths = Array.from({ length: 300 }, (_, i) => (i % 50 === 49 ? 100_000 : i));
    const replies = await Promise.all(
      lengths.map((length, i) => client.request(new Uint8Array(length).fill(i & 0x7f))),
    );
    for (const [i, reply] of replies.entries()) {
      assert.equal(reply.length, lengths[i]);
      assert.ok(reply.every((byte) => byte === (i & 0x7f) + 1));
    }
  });

  it('run no more handlers of a connection than wanted', async () => {
    let running = 0;
    let most = 0;
    const handler = async ({ bytes }: { bytes: Uint8Array }): Promise<Uint8Array> => {
      most = Math.max(most, ++running);
      await sleep(1);
      running--;
      return bytes;
    };
    await world.serve(handler, { maxRunning: 3 });
    const client = world.client();
    await Promise.all(Array.from({ length: 20 }, () => client.request(new Uint8Array(1))));
    assert.equal(most, 3);
  });

  it('that are given up let others run, though all handlers wait', async () => {
    const handler: Handler = async ({ bytes, signal }) => {
      if (textOf(bytes) === 'hang')
        await new Promise((ended) => signal.addEventListener('abort', ended));
      return bytes;
    };
    await world.serve(handler, { maxRunning: 2 });
    const client = world.client();
    const hanging = [1, 2, 3, 4, 5].map(() => client.request(bytesOf('hang'), { timeoutMs: 50 }));
    const last = client.request(bytesOf('last'));
    for (const each of hanging) await assert.rejects(each, codeOf('DAT_TIMEOUT_EXPIRED'));
    assert.equal(textOf(await last), 'last');
  });

  it('end with the error of the handler: name, message, code', async () => {
    await world.serve(({ bytes }) => {
      const text = textOf(bytes);
      if (text === 'code') throw Object.assign(new TypeError('no such file'), { code: 'ENOENT' });
      // eslint-disable-next-line @typescript-eslint/only-throw-error -- handlers of JavaScript do
      if (text === 'text') throw 'just text';
      return 'no bytes' as never;
    });
    const client = world.client();
    const failure = async (text: string): Promise<RemoteError> => {
      const error: unknown = await client.request(bytesOf(text)).catch((reason: unknown) => reason);
      assert.ok(error instanceof RemoteError);
      return error;
    };
    const { remoteName, message, code } = await failure('code');
    assert.deepEqual([remoteName, message, code], ['TypeError', 'no such file', 'ENOENT']);
    assert.equal((await failure('text')).message, 'just text');
    assert.match((await failure('')).message, /the reply is "no bytes"; it must be a Uint8Array/);
    assert.equal(client.isConnected, true);
  });

  it('end in time, or by a signal, and the handler hears of it', async () => {
    const aborted: string[] = [];
    await world.serve(async ({ bytes, signal }) => {
      if (textOf(bytes) === 'quick') return bytes;
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      aborted.push(textOf(bytes));
      return bytes;
    });
    const client = world.client();
    await client.request(bytesOf('quick'));
    const late = client.request(bytesOf('late'), { timeoutMs: 20 });
    await assert.rejects(
      late,
      codeOf('DAT_TIMEOUT_EXPIRED', /within 20 ms; the client is connected/),
    );
    const controller = new AbortController();
    const stopped = client.request(bytesOf('stopped'), { signal: controller.signal });
    await client.request(bytesOf('quick'));
    controller.abort(new Error('enough'));
    await assert.rejects(stopped, codeOf('DAT_INTERRUPTED_CALL'));
    await client.request(bytesOf('quick'));
    assert.deepEqual(aborted, ['late', 'stopped']);
    const { signal } = controller;
    await assert.rejects(client.request(bytesOf('x'), { signal }), codeOf('DAT_INTERRUPTED_CALL'));
  });

  it('that are too long, or whose reply is, fail alone', async () => {
    await world.serve(({ bytes }) => new Uint8Array(bytes[0]! * 1000), {
      limits: { maxMessageBytes: 100 },
    });
    const client = world.client({ limits: { maxMessageBytes: 5000 } });
    await assert.rejects(
      client.request(new Uint8Array(93)),
      codeOf('DAT_LENGTH_ERROR', /101.*100/),
    );
    const long = client.request(Uint8Array.of(6));
    await assert.rejects(long, (error) => {
      assert.ok(error instanceof RemoteError);
      assert.equal(error.code, 'DAT_LENGTH_ERROR');
      return true;
    });
    assert.equal((await client.request(Uint8Array.of(4))).length, 4000);
  });

  it('wait for a server that is not there yet, and say why they gave up', async () => {
    const client = world.client();
    const early = client.request(bytesOf('early'), { timeoutMs: 5000 });
    const lost = client.request(bytesOf('lost'), { timeoutMs: 60 });
    await assert.rejects(
      lost,
      codeOf('DAT_TIMEOUT_EXPIRED', /the client is (?:waiting|connecting)/),
    );
    await world.serve(({ bytes }) => bytes);
    assert.equal(textOf(await early), 'early');
  });

  it('are refused with a wrong option, and by a closed client', async () => {
    assert.throws(
      () => new Client({ address: SERVER, port: PORT, timeoutMs: -1 }),
      codeOf('DAT_INVALID_PARAMETER', /^Client: timeoutMs is -1; it must be a number from 0 on/),
    );
    assert.throws(
      () => new Client({ address: SERVER, port: PORT, waitMs: { least: 10, most: 5 } }),
      codeOf('DAT_INVALID_PARAMETER', /waitMs\.least is 10; it must be at most waitMs\.most, 5/),
    );
    await assert.rejects(
      serve({ provider: world.provider(2), port: PORT, maxRunning: 0 }, ({ bytes }) => bytes),
      codeOf('DAT_INVALID_PARAMETER', /^serve: maxRunning is 0/),
    );
    await assert.rejects(
      serve({ provider: world.provider(2), port: PORT }, 5 as never),
      codeOf('DAT_INVALID_PARAMETER', /handler is 5; it must be a function/),
    );
    const client = world.client({ port: -1 });
    await assert.rejects(
      client.request(bytesOf('a')),
      codeOf('DAT_INVALID_PARAMETER', /port is -1/),
    );
    await assert.rejects(
      client.request('a' as never),
      codeOf('DAT_INVALID_PARAMETER', /Uint8Array/),
    );
    await client.close();
    await assert.rejects(client.request(bytesOf('a')), codeOf('DAT_CONN_CLOSED'));
  });
});

describe('easy: a client', () => {
  let world: World;

  beforeEach(() => {
    world = new World();
  });

  afterEach(() => world.end());

  it('connects again when the server has gone, and says so', async () => {
    const client = world.client();
    const states: ClientState[] = [];
    const connected: boolean[] = [];
    let completed = false;
    client.state$.subscribe({
      next: (each) => states.push(each),
      complete: () => (completed = true),
    });
    client.connected$.subscribe((each) => connected.push(each));
    const first = await world.serve(({ bytes }) => bytes);
    await client.request(bytesOf('a'));
    await first.close();
    while (states.filter(({ state }) => state === 'waiting').length < 3) await sleep(1);
    await world.serve(() => bytesOf('second'));
    assert.equal(textOf(await client.request(bytesOf('b'))), 'second');
    await client.close();
    assert.deepEqual(connected, [false, true, false, true, false]);
    assert.ok(completed);
    const waits = states.filter(({ state }) => state === 'waiting');
    assert.deepEqual(
      waits.slice(0, 3).map(({ waitMs }) => waitMs),
      [5, 10, 20],
    );
    assert.ok(waits.slice(1).every(({ cause }) => FlowError.isFlowError(cause)));
    assert.equal(states.at(-1)!.state, 'closed');
  });

  it('never sends a request twice: one under way ends with its connection', async () => {
    let taken = 0;
    const hang = (): Promise<Uint8Array> => {
      taken++;
      return new Promise(() => undefined);
    };
    const first = await world.serve(hang);
    const client = world.client();
    const lost = client.request(bytesOf('a'));
    while (taken === 0) await sleep(1);
    await Promise.all([
      assert.rejects(
        lost,
        codeOf('DAT_CONN_ENDED', /no reply, and the request may have been exec/),
      ),
      first.close({ timeoutMs: 10 }),
    ]);
    await world.serve(({ bytes }) => bytes);
    assert.equal(textOf(await client.request(bytesOf('b'))), 'b');
    assert.equal(taken, 1);
  });

  it('lets requests under way end when it is closed, and ends those that do not', async () => {
    const opened: (() => void)[] = [];
    await world.serve(async ({ bytes }) => {
      await new Promise<void>((resolve) => opened.push(resolve));
      return bytes;
    });
    const client = world.client();
    const reply = client.request(bytesOf('a'));
    while (opened.length === 0) await sleep(1);
    const closing = client.close();
    opened[0]!();
    assert.equal(textOf(await reply), 'a');
    await closing;
    const other = world.client();
    const left = other.request(bytesOf('b'));
    while (opened.length === 1) await sleep(1);
    await Promise.all([
      assert.rejects(left, codeOf('DAT_CONN_CLOSED')),
      other.close({ timeoutMs: 10 }),
    ]);
  });

  it('is the only peer that a server takes', async () => {
    await world.serve(({ bytes }) => bytes);
    const place = { provider: world.provider(1), address: SERVER, port: PORT };
    await assert.rejects(connect(place), codeOf('DAT_CONN_REJECTED'));
    await assert.rejects(connect({ ...place, ...offerChannel() }), codeOf('DAT_CONN_REJECTED'));
  });

  for (const [what, message] of [
    ['a short message', [1, 2]],
    ['a kind that is none', [9, 0, 0, 0, 0, 0, 0, 1]],
    ['a reply', [3, 0, 0, 0, 0, 0, 0, 1]],
  ] as const) {
    it(`that sends ${what} is left, and others are served on`, async () => {
      const server = await world.serve(({ bytes }) => bytes);
      const place = { provider: world.provider(1), address: SERVER, port: PORT };
      const id = Uint8Array.of(0x44, 0x41, 0x54, 0x72, 1);
      const liar = channel(await connect({ ...place, ...offerChannel({}, id) }));
      await liar.send(Uint8Array.from(message));
      await assert.rejects(liar.receive(), codeOf('DAT_CONN_ENDED'));
      await liar.close();
      while (server.connections > 0) await sleep(1);
      assert.equal(textOf(await world.client().request(bytesOf('a'))), 'a');
    });
  }
});
