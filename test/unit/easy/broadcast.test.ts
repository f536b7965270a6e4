/** One to many: `Broadcast` and `reconnect` of `dapl/easy`. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  Broadcast,
  type Connection,
  connect,
  FlowError,
  listen,
  type Listener,
  reconnect,
  type ReconnectState,
} from 'dapl/easy';
import { Fabric, mock } from 'dapl/providers/mock';

const PORT = 7;
const SERVER = '192.0.2.2';
const bytesOf = (text: string): Uint8Array => Buffer.from(text);
const refused = (text: RegExp) => (error: unknown) => {
  assert.ok(FlowError.isFlowError(error), String(error));
  assert.equal(error.code, 'DAT_INVALID_PARAMETER');
  assert.match(error.message, text);
  return true;
};

describe('easy: one to many', () => {
  let fabric: Fabric;
  let server: Listener;

  const provider = (host: number): ReturnType<typeof mock> =>
    mock({ fabric, address: `192.0.2.${host}` });
  const place = (host: number) => ({ provider: provider(host), address: SERVER, port: PORT });

  async function pair(host: number): Promise<readonly [reader: Connection, served: Connection]> {
    return Promise.all([connect(place(host)), server.accept()]);
  }

  async function texts(conn: Connection, count: number): Promise<string[]> {
    const taken: string[] = [];
    for await (const { bytes } of conn) {
      taken.push(Buffer.from(bytes).toString());
      if (taken.length === count) break;
    }
    return taken;
  }

  beforeEach(async () => {
    fabric = new Fabric({ seed: 3, autoRun: true });
    server = await listen({ provider: provider(2), port: PORT });
  });

  afterEach(() => server.close());

  it('sends each message to all readers, in order, whatever becomes of the bytes', async () => {
    const pairs = [await pair(3), await pair(4)];
    const broadcast = new Broadcast<Connection>();
    for (const [, served] of pairs) broadcast.add(served).add(served);
    assert.equal(broadcast.size, 2);
    const bytes = Buffer.alloc(1);
    const wanted = Array.from({ length: 50 }, (_, i) => String.fromCharCode(65 + (i % 26)));
    for (const text of wanted) {
      bytes.write(text);
      broadcast.send(bytes);
    }
    for (const [reader] of pairs) assert.deepEqual(await texts(reader, 50), wanted);
    await broadcast.close();
    await Promise.all(pairs.map(([reader]) => reader.close()));
  });

  for (const whenFull of ['close', 'drop'] as const) {
    it(`leaves a slow reader behind, and delays no other: ${whenFull}`, async () => {
      const [quick, slow] = [await pair(3), await pair(4)];
      const left: Connection[] = [];
      const broadcast = new Broadcast<Connection>({
        ...{ maxWaiting: 20, whenFull },
        onSlow: (reader) => left.push(reader),
      });
      broadcast.add(quick[1]).add(slow[1]);
      const taken: Promise<string[]> = texts(quick[0], 100);
      for (let i = 0; i < 100; i++) {
        broadcast.send(bytesOf(String(i)));
        while (broadcast.waiting(quick[1]) > 0) await sleep(0);
      }
      assert.deepEqual(
        await taken,
        Array.from({ length: 100 }, (_, i) => String(i)),
      );
      assert.ok(left.length > 0 && left.every((each) => each === slow[1]));
      assert.equal(broadcast.has(slow[1]), whenFull === 'drop');
      if (whenFull === 'close') assert.equal(left.length, 1);
      await broadcast.close({ timeoutMs: 10 });
      await Promise.all([quick[0].close(), slow[0].close()]);
    });
  }

  it('forgets a reader whose connection has ended, and one that is taken out', async () => {
    const [gone, other] = [await pair(3), await pair(4)];
    const broadcast = new Broadcast<Connection>();
    broadcast.add(gone[1]).add(other[1]);
    await gone[0].close();
    while (broadcast.has(gone[1])) {
      broadcast.send(bytesOf('x'));
      await sleep(1);
    }
    assert.deepEqual([broadcast.delete(other[1]), broadcast.delete(other[1])], [true, false]);
    await other[1].send(bytesOf('still open'));
    await broadcast.close();
    await other[1].close();
    await other[0].close();
  });

  it('refuses what is no reader, no bytes, and wrong options', () => {
    const broadcast = new Broadcast();
    assert.throws(() => broadcast.add({} as never), refused(/must be a connection or a channel/));
    assert.throws(() => broadcast.send('a' as never), refused(/bytes is "a".*a Uint8Array/));
    assert.throws(() => new Broadcast({ maxWaiting: 0 }), refused(/^Broadcast: maxWaiting is 0/));
    assert.throws(
      () => new Broadcast({ whenFull: 'wait' as never }),
      refused(/whenFull is "wait"/),
    );
  });

  it('reconnects after each end, with growing waits, until its signal fires', async () => {
    const controller = new AbortController();
    const states: ReconnectState[] = [];
    const seen: string[] = [];
    const reading = (async () => {
      const options = { waitMs: { least: 5, most: 20 }, timeoutMs: 100 };
      const { signal } = controller;
      const onState = (state: ReconnectState): void => void states.push(state);
      for await (const conn of reconnect({ ...place(3), ...options, signal, onState })) {
        for await (const { bytes } of conn) seen.push(Buffer.from(bytes).toString());
      }
    })();
    const speak = async (text: string): Promise<Connection> => {
      const conn = await server.accept();
      await conn.send(bytesOf(text));
      return conn;
    };
    await (await speak('a')).close();
    await server.close();
    while (states.filter(({ cause }) => cause !== undefined).length < 3) await sleep(1);
    server = await listen({ provider: provider(2), port: PORT });
    const second = await speak('b');
    while (seen.length < 2) await sleep(1);
    controller.abort();
    await reading;
    await second.closed;
    assert.deepEqual(seen, ['a', 'b']);
    const waits = states.filter(({ state }) => state === 'waiting').map(({ waitMs }) => waitMs);
    assert.deepEqual(waits.slice(0, 4), [5, 10, 20, 20]);
    assert.deepEqual(states[0], { state: 'connecting', attempt: 1 });
    assert.deepEqual(states.at(-1), { state: 'connected', attempt: 0 });
  });

  it('closes a connection that the loop leaves, and throws what no attempt mends', async () => {
    let served: Connection | undefined;
    for await (const conn of reconnect(place(3))) {
      served = await server.accept();
      await conn.send(bytesOf('x'));
      break;
    }
    await served!.closed;
    const wrong = reconnect({ ...place(3), port: 0 });
    await assert.rejects(wrong.next(), refused(/port is 0/));
    const waits = reconnect({ ...place(3), waitMs: { least: 9, most: 8 } });
    await assert.rejects(
      waits.next(),
      refused(/^reconnect: waitMs\.least is 9; .* waitMs\.most, 8/),
    );
  });
});
