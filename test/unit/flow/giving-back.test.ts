// What is given back: where the making fails half way, where a post fails, and at an end. Memory
// that stays lent would keep the zone of its connections, and what is left of an adapter shows
// that.
import assert from 'node:assert/strict';
import {
  type Connection,
  connect,
  datagrams,
  FlowError,
  listen,
  type Message,
} from '../../../core/flow/index.js';
import {
  bytesOf,
  CLIENT,
  failureOf,
  flowPair,
  type FlowWorld,
  flowWorld,
  leftOf,
  NOTHING_LEFT,
  PORT,
  SERVER,
  textOf,
} from '../../support/flow-scene.js';

const FEW = { receives: { buffers: 4, bufferBytes: 64 }, requests: 4 };

describe('flow: what is given back', () => {
  const worlds: FlowWorld[] = [];
  const worldOf = async (): Promise<FlowWorld> => {
    const world = await flowWorld();
    worlds.push(world);
    return world;
  };
  const pairOf = async (...options: Parameters<typeof flowPair>): ReturnType<typeof flowPair> => {
    const pair = await flowPair(...options);
    worlds.push(pair);
    return pair;
  };
  afterEach(async () => {
    for (const world of worlds.splice(0)) await world.close();
  });

  it('all of a connection whose receives cannot be posted, at either side', async () => {
    const { client, server } = await worldOf();
    const attributes = { maxRecvDtos: 1 };
    const to = { address: SERVER, port: PORT };
    const failed = await failureOf(connect(client, { ...to, ...FEW, attributes }));
    assert.match(failed.code, /^DAT_/);
    assert.equal(leftOf(client), NOTHING_LEFT);
    const listener = await listen(server, { port: PORT, ...FEW, attributes });
    assert.equal((await failureOf(connect(client, to))).code, 'DAT_CONN_REJECTED');
    await listener.close();
    assert.deepEqual([leftOf(client), leftOf(server)], [NOTHING_LEFT, NOTHING_LEFT]);
  });

  it('all of datagrams whose receives cannot be posted', async () => {
    const { client } = await worldOf();
    const attributes = { maxRecvDtos: 1 };
    assert.match((await failureOf(datagrams(client, { attributes }))).code, /^DAT_/);
    assert.equal(leftOf(client), NOTHING_LEFT);
  });

  it('the buffer of a post that fails', async () => {
    const { client, server, near, far, listener } = await pairOf(
      { ...FEW, attributes: { maxRequestDtos: 1 } },
      FEW,
    );
    const grant = far.expose(64, 'read-write');
    const posts = [
      () => near.send(bytesOf('x')),
      () => near.write(bytesOf('x'), grant),
      () => near.read(new Uint8Array(8), grant),
    ];
    for (const post of posts) {
      const first = near.send(bytesOf('first'));
      assert.match((await failureOf(post())).code, /^DAT_INSUFFICIENT|^DAT_LENGTH|^DAT_INVALID/);
      await first;
      assert.equal(textOf((await far.receive()).bytes), 'first');
    }
    await near.close();
    await far.close();
    await listener.close();
    assert.deepEqual([leftOf(client), leftOf(server)], [NOTHING_LEFT, NOTHING_LEFT]);
  });

  it('datagrams that nothing has taken, with their buffers', async () => {
    const { client, server, fabric } = await worldOf();
    const [near, far] = [await datagrams(client), await datagrams(server)];
    await near.send(bytesOf('untaken'), { address: SERVER, qpn: far.qpn });
    await new Promise<void>((resolve) => fabric.clock.at(fabric.clock.now() + 1000, resolve));
    await far.close();
    await near.close();
    assert.deepEqual([leftOf(client), leftOf(server)], [NOTHING_LEFT, NOTHING_LEFT]);
  });

  it('a grant that is revoked, once; another one goes on', async () => {
    const { near, far } = await pairOf(FEW);
    const [one, other] = [far.expose(8, 'write'), far.expose(8, 'write')];
    one.revoke();
    await near.write(Uint8Array.of(5), other);
    assert.equal(other.bytes[0], 5);
  });

  it('a lease, and a lent message, where their block ends', async () => {
    const { near, far } = await pairOf({ receives: { buffers: 1, lend: true } });
    await near.send(bytesOf('a'));
    let kept: Message;
    {
      using message = await far.receive();
      kept = message;
    }
    assert.ok(kept.isReleased);
    await near.send(bytesOf('b'));
    assert.equal(textOf((await far.receive()).bytes), 'b');
  });
});

describe('flow: iterations and options of a connection', () => {
  let world: Awaited<ReturnType<typeof flowPair>>;
  beforeEach(async () => {
    world = await flowPair();
  });
  afterEach(() => world.close());

  const all = async (conn: Connection): Promise<string[]> => {
    const texts: string[] = [];
    for await (const { bytes } of conn) texts.push(textOf(bytes));
    return texts;
  };

  it('an iteration may be left, and the rest taken by another', async () => {
    const { near, far } = world;
    for (const text of ['a', 'b', 'c']) await near.send(bytesOf(text));
    for await (const { bytes } of far) {
      assert.equal(textOf(bytes), 'a');
      break;
    }
    const rest = all(far);
    await near.close();
    assert.deepEqual(await rest, ['b', 'c']);
  });

  it('one ends when this side closes, also while the peer has not answered that', async () => {
    const { near, fabric } = world;
    const iterated = all(near);
    fabric.partition([CLIENT], [SERVER]);
    const closed = near.close({ timeoutMs: 1000 });
    assert.deepEqual(await iterated, []);
    await closed;
  });

  it('a wait that times out says what holds it up only where that is so', async () => {
    const { message } = await failureOf(world.far.receive({ timeoutMs: 1 }));
    assert.equal(message, 'conn.receive: not done within 1 ms [DAT_TIMEOUT_EXPIRED]');
  });

  it('what cannot be is refused, and changes nothing', async () => {
    const { near, far } = world;
    const refused = async (promise: Promise<unknown>, message: RegExp): Promise<void> => {
      const error = await failureOf(promise);
      assert.equal(error.code, 'DAT_INVALID_PARAMETER');
      assert.match(error.message, message);
    };
    await refused(near.receive({ timeoutMs: -1 }), /^conn\.receive: timeoutMs is -1/);
    await refused(near.close({ timeoutMs: -1 }), /^conn\.close: timeoutMs is -1/);
    const grant = far.expose(8, 'read');
    await refused(near.read('text' as never, grant), /^conn\.read: data is "text"/);
    await refused(near.read(new Uint8Array(1), grant, { offset: -1 }), /offset is -1/);
    assert.throws(
      () => near.expose(8, 'all' as never),
      (error) => FlowError.isFlowError(error) && /access is "all"; it must be/.test(error.message),
    );
    assert.ok(near.isOpen && far.isOpen);
    await near.close({ signal: AbortSignal.abort() });
    assert.equal(near.isOpen, false);
  });

  it('keeps the process alive by its service point, unless told otherwise', () => {
    const { listener } = world;
    assert.equal(listener.psp.hasRef(), true);
    listener.unref();
    assert.equal(listener.psp.hasRef(), false);
    listener.ref();
    assert.equal(listener.psp.hasRef(), true);
  });
});
