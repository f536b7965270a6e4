import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { connect, type Connection, listen, type ListenOptions } from '../../../core/flow/index.js';
import {
  bytesOf,
  failureOf,
  type FlowWorld,
  flowWorld,
  leftOf,
  NOTHING_LEFT,
  PORT,
  SERVER,
} from '../../support/flow-scene.js';

describe('flow: listeners', () => {
  let world: FlowWorld;
  beforeEach(async () => {
    world = await flowWorld();
  });
  afterEach(() => world.close());

  const dial = (port = PORT): Promise<Connection> =>
    connect(world.client, { address: SERVER, port });

  it('hands out connections in the order in which they came, until it is closed', async () => {
    const listener = await listen(world.server, {});
    const nears = [await dial(listener.port), await dial(listener.port)];
    const fars: Connection[] = [];
    for await (const conn of listener) {
      fars.push(conn);
      if (fars.length === 2) void listener.close();
    }
    await nears[0]?.send(Uint8Array.of(1));
    await nears[1]?.send(Uint8Array.of(2));
    const values = await Promise.all(fars.map(async (conn) => (await conn.receive()).bytes[0]));
    assert.deepEqual(values, [1, 2]);
    assert.ok(listener.isClosed);
    assert.equal((await failureOf(listener.accept())).code, 'DAT_CONN_CLOSED');
  });

  it('closes what nothing has taken, and ends what waits', async () => {
    const listener = await listen(world.server, { port: PORT });
    const near = await dial();
    const [first, waiting] = [await listener.accept(), failureOf(listener.accept())];
    await listener.close();
    assert.equal((await waiting).code, 'DAT_CONN_CLOSED');
    assert.ok(first.isOpen && near.isOpen);
    assert.equal((await failureOf(dial())).code, 'DAT_CONN_REFUSED');

    const other = await listen(world.server, { port: PORT });
    const untaken = await dial();
    await other.close();
    await untaken.closed;
    await first.close();
    assert.equal(leftOf(world.server), NOTHING_LEFT);
  });

  it('closes by its signal', async () => {
    const abort = new AbortController();
    const listener = await listen(world.server, { signal: abort.signal });
    abort.abort();
    for await (const conn of listener) assert.fail(`connection of endpoint ${conn.ep.id}`);
    assert.equal(
      (await failureOf(listen(world.server, { signal: abort.signal }))).code,
      'DAT_INTERRUPTED_CALL',
    );
  });

  it('loses no connection with a wait that has ended', async () => {
    const listener = await listen(world.server, { port: PORT });
    assert.equal((await failureOf(listener.accept({ timeoutMs: 1 }))).code, 'DAT_TIMEOUT_EXPIRED');
    await dial();
    assert.ok((await listener.accept()).isOpen);
  });

  it('has room for its backlog; further peers wait, and come when there is room', async () => {
    const listener = await listen(world.server, { port: PORT, backlog: 2 });
    const dialled = [dial(), dial(), dial()];
    await Promise.all(dialled.slice(0, 2));
    const third = dialled[2] as Promise<Connection>;
    const state = await Promise.race([third.then(() => 'there'), listener.accept()]);
    assert.notEqual(state, 'there');
    assert.ok((await third).isOpen);
  });

  it('answers no more than twice its backlog; peers beyond give up after a minute', async () => {
    const backlog = 2;
    const listener = await listen(world.server, { port: PORT, backlog });
    await Promise.all(Array.from({ length: backlog }, () => dial()));
    const { clock } = world.fabric;
    const startUs = clock.now();
    const waiting: Promise<Connection>[] = [];
    const gaveUp: string[] = [];
    for (let i = 0; i < 3 * backlog; i++) {
      const asked = dial();
      waiting.push(asked);
      asked.catch((error: unknown) => gaveUp.push(String(error)));
    }
    const impatient = connect(world.client, { address: SERVER, port: PORT, timeoutMs: 1000 });
    assert.equal((await failureOf(impatient)).code, 'DAT_TIMEOUT_EXPIRED');
    await new Promise<void>((resolve) => clock.at(startUs + 60_000_000, resolve));
    assert.equal(gaveUp.length, 2 * backlog, 'as many as the backlog wait on, without end');
    for (const error of gaveUp) assert.match(error, /no answer to 16 requests \[DAT_CONN_UNREACH/);
    for (let i = 0; i < 2 * backlog; i++) assert.ok((await listener.accept()).isOpen);
    const ends = await Promise.allSettled(waiting);
    assert.equal(ends.filter(({ status }) => status === 'fulfilled').length, backlog);
    assert.ok((await dial()).isOpen, 'there is room again');
  });

  it('asks its function, which may take its time, and answers what it says', async () => {
    const seen: unknown[] = [];
    const listener = await listen(world.server, {
      answer: async ({ address, privateData, refuse }) => {
        seen.push(address, privateData.length);
        await Promise.resolve();
        return privateData[0] === 1 ? bytesOf('yes') : refuse();
      },
    });
    const ask = (value: number): Promise<Connection> =>
      connect(world.client, {
        address: SERVER,
        port: listener.port,
        privateData: Uint8Array.of(value),
      });
    assert.deepEqual([...(await ask(1)).peerPrivateData.subarray(0, 4)], [...bytesOf('yes'), 0]);
    assert.equal((await failureOf(ask(2))).code, 'DAT_CONN_REJECTED');
    assert.deepEqual(seen, ['192.0.2.1', 56, '192.0.2.1', 56]);
  });

  it('refuses where its function throws or answers too much, and goes on', async () => {
    let round = 0;
    const answers: ListenOptions['answer'][] = [
      () => assert.fail('a mistake'),
      () => new Uint8Array(197),
      () => 'text' as never,
      ({ refuse }) => refuse(new Uint8Array(149)),
      () => undefined,
    ];
    const listener = await listen(world.server, {
      port: PORT,
      answer: (request) => answers[round++]?.(request),
    });
    for (let i = 0; i < 4; i++) {
      assert.equal((await failureOf(dial())).code, 'DAT_CONN_REJECTED');
    }
    assert.ok((await dial()).isOpen);
    await listener.close();
  });

  it('refuses a request whose answer comes after the close', async () => {
    let answered: () => void = () => assert.fail('not asked');
    const listener = await listen(world.server, {
      port: PORT,
      answer: () => new Promise<undefined>((resolve) => (answered = () => resolve(undefined))),
    });
    const dialled = failureOf(dial());
    while (!/opening: 1/.test(inspect(listener))) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    const closed = listener.close();
    answered();
    await closed;
    assert.equal((await dialled).code, 'DAT_CONN_REJECTED');
    assert.equal(leftOf(world.server), NOTHING_LEFT);
  });

  it('ends with its adapter', async () => {
    const listener = await listen(world.server, { port: PORT });
    const waiting = failureOf(listener.accept());
    await world.server.close();
    assert.equal((await waiting).code, 'DAT_CONN_CLOSED');
  });

  it('refuses a port that is taken, and options that cannot be', async () => {
    await listen(world.server, { port: PORT });
    const { code, message } = await failureOf(listen(world.server, { port: PORT }));
    assert.equal(code, 'DAT_CONN_QUAL_IN_USE');
    assert.equal(message.split(`[${code}]`).length, 2, 'the code stands once');
    const refused = async (options: object, message: RegExp): Promise<void> =>
      assert.match((await failureOf(listen(world.server, options))).message, message);
    await refused({ port: 70_000 }, /port is 70000/);
    await refused({ backlog: 0 }, /backlog is 0; it must be an integer from 1 to 4096/);
    await refused({ answer: 5 }, /answer is 5; it must be a function/);
    await refused({ prot: 5 }, /did you mean "port"/);
  });
});
