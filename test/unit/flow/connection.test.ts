import assert from 'node:assert/strict';
import {
  connect,
  type ConnectionOptions,
  type ConnectOptions,
  type Grant,
  type GrantJson,
  listen,
  type Message,
} from '../../../core/flow/index.js';
import {
  bytesOf,
  CLIENT,
  failureOf,
  type FlowPair,
  flowPair,
  type FlowWorld,
  flowWorld,
  leftOf,
  NOTHING_LEFT,
  PORT,
  SERVER,
  textOf,
} from '../../support/flow-scene.js';

const open: FlowWorld[] = [];

async function pairOf(
  near: ConnectionOptions = {},
  far: ConnectionOptions = near,
): Promise<FlowPair> {
  const pair = await flowPair(near, far);
  open.push(pair);
  return pair;
}

async function worldOf(): Promise<FlowWorld> {
  const world = await flowWorld();
  open.push(world);
  return world;
}

/** What the peer is told, by way of JSON. */
const told = (grant: Grant): GrantJson => JSON.parse(JSON.stringify(grant)) as GrantJson;

describe('flow: connections', () => {
  afterEach(async () => {
    for (const world of open.splice(0)) await world.close();
  });

  it('carries messages both ways, whole and in order', async () => {
    const { near, far } = await pairOf();
    await Promise.all(['one', 'two', ''].map((text) => near.send(bytesOf(text))));
    const texts = [];
    for (let i = 0; i < 3; i++) texts.push(textOf((await far.receive()).bytes));
    assert.deepEqual(texts, ['one', 'two', '']);
    const answer = near.receive();
    await far.send(bytesOf('answer'), { immediate: 0xdeadbeef });
    const message = await answer;
    assert.deepEqual([textOf(message.bytes), message.immediate], ['answer', 0xdeadbeef]);
    assert.deepEqual([message.lengthBytes, message.isReleased], [6, false]);
  });

  it('shows the private data of each side to the other', async () => {
    const world = await worldOf();
    const listener = await listen(world.server, {
      answer: ({ privateData, address }) =>
        bytesOf(`${textOf(privateData.subarray(0, 2))} ${address}`),
    });
    const privateData = bytesOf('hi');
    const [near, far] = await Promise.all([
      connect(world.client, { address: SERVER, port: listener.port, privateData }),
      listener.accept(),
    ]);
    assert.equal(textOf(near.peerPrivateData).replaceAll('\0', ''), `hi ${CLIENT}`);
    assert.equal(near.peerPrivateData.length, 196);
    assert.equal(textOf(far.peerPrivateData).replaceAll('\0', ''), 'hi');
  });

  it('sends memory of its zone without a copy', async () => {
    const { near, far } = await pairOf();
    const memory = near.ia.allocate(100, { pz: near.ep.pz });
    memory.bytes.fill(7);
    await near.send(memory.segment(10, 5));
    assert.deepEqual([...(await far.receive()).bytes], [7, 7, 7, 7, 7]);
  });

  it('waits for a peer that does not receive, however long, and loses nothing', async () => {
    const { near, far, fabric } = await pairOf({ receives: { buffers: 2 }, requests: 3 });
    const before = fabric.clock.now();
    const sent = Promise.all(Array.from({ length: 9 }, (_, i) => near.send(Uint8Array.of(i))));
    const late = await failureOf(near.send(Uint8Array.of(9), { timeoutMs: 3000 }));
    assert.equal(late.code, 'DAT_TIMEOUT_EXPIRED');
    assert.match(late.message, /it has not been posted, and has no effect/);
    assert.ok(fabric.clock.now() - before >= 3_000_000);
    const values = [];
    for (let i = 0; i < 9; i++) values.push((await far.receive()).bytes[0]);
    await sent;
    assert.deepEqual(values, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it('copies messages unless told to lend; a lent one is used until its release', async () => {
    const { near, far } = await pairOf({ receives: { buffers: 1 } });
    await near.send(bytesOf('a'));
    const copied = await far.receive();
    await near.send(bytesOf('b'));
    assert.equal(textOf(copied.bytes), 'a');
    copied.release();
    copied.release();
    assert.equal(textOf(copied.bytes), 'a');

    const lending = await pairOf({ receives: { buffers: 1, lend: true } });
    await lending.near.send(bytesOf('a'));
    const lent = await lending.far.receive();
    const second = lending.near.send(bytesOf('b'));
    const none = await failureOf(lending.far.receive({ timeoutMs: 100 }));
    assert.match(none.message, /every receive buffer is in a message .* message\.release\(\)/);
    assert.equal(textOf(lent.bytes), 'a');
    lent.release();
    await second;
    assert.throws(() => lent.bytes, { code: 'DAT_INVALID_STATE' });
    assert.throws(() => lent.release(), { code: 'DAT_INVALID_STATE' });
    lent[Symbol.dispose]();
    const next = await lending.far.receive();
    assert.equal(textOf(next.bytes), 'b');
    next[Symbol.dispose]();
    assert.ok(next.isReleased);
  });

  it('refuses a message that is too long before anything is sent, with both sizes', async () => {
    const { near, far } = await pairOf({ maxMessageBytes: 100 });
    const error = await failureOf(near.send(new Uint8Array(101)));
    assert.equal(error.code, 'DAT_LENGTH_ERROR');
    assert.match(error.message, /a message of 101 bytes: maxMessageBytes is 100/);
    assert.equal(error.value, 101);
    await near.send(new Uint8Array(100));
    assert.equal((await far.receive()).lengthBytes, 100);
  });

  it('names what each side knows when only the peer has found a message too long', async () => {
    const { near, far } = await pairOf(
      { receives: { bufferBytes: 200 } },
      { receives: { bufferBytes: 100 } },
    );
    const theirs = failureOf(far.receive());
    const ours = await failureOf(near.send(new Uint8Array(150)));
    assert.deepEqual([ours.code, ours.reason], ['DAT_CONN_BROKEN', 'REMOTE_LENGTH']);
    assert.match(ours.message, /the message had 150 bytes, and only the peer knows its own limit/);
    const { code, reason, message } = await theirs;
    assert.deepEqual([code, reason], ['DAT_CONN_BROKEN', 'LOCAL_LENGTH']);
    assert.match(message, /receives\.bufferBytes is 100 here/);
  });

  it('leaves a message for the next call when a wait for it has ended', async () => {
    const { near, far } = await pairOf();
    assert.equal((await failureOf(far.receive({ timeoutMs: 5 }))).code, 'DAT_TIMEOUT_EXPIRED');
    const abort = new AbortController();
    const interrupted = failureOf(far.receive({ signal: abort.signal }));
    abort.abort();
    assert.equal((await interrupted).code, 'DAT_INTERRUPTED_CALL');
    await near.send(bytesOf('still there'));
    assert.equal(textOf((await far.receive()).bytes), 'still there');
  });

  it('iterates until a side closes; what had come before is handed out', async () => {
    const { near, far } = await pairOf();
    for (const text of ['a', 'b']) await near.send(bytesOf(text));
    await near.close();
    const texts = [];
    for await (const message of far) texts.push(textOf(message.bytes));
    assert.deepEqual(texts, ['a', 'b']);
    await far.closed;
    const error = await failureOf(far.receive());
    assert.deepEqual([error.code, error.operation], ['DAT_CONN_ENDED', 'conn.receive']);
    assert.ok(error.flightRecord.length > 0);
    assert.equal((await failureOf(far.send(bytesOf('x')))).code, 'DAT_CONN_ENDED');
    assert.equal((await failureOf(near.receive())).code, 'DAT_CONN_CLOSED');
  });

  it('sends what has been asked for before it closes', async () => {
    const { near, far } = await pairOf({ requests: 2 });
    const sent = Promise.all(Array.from({ length: 8 }, (_, i) => near.send(Uint8Array.of(i))));
    const closed = near.close();
    assert.equal((await failureOf(near.send(Uint8Array.of(8)))).code, 'DAT_CONN_CLOSED');
    const values = [];
    for await (const { bytes } of far) values.push(bytes[0]);
    await Promise.all([sent, closed, near.closed]);
    assert.deepEqual(values, [0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it('closes in bounded time although the peer takes nothing', async () => {
    const { near, fabric } = await pairOf({ receives: { buffers: 1 } });
    const sends = [1, 2].map((n) => near.send(Uint8Array.of(n)));
    await sends[0];
    const stuck = failureOf(sends[1] as Promise<void>);
    const before = fabric.clock.now();
    await near.close({ timeoutMs: 50 });
    assert.ok(fabric.clock.now() - before < 60_000);
    assert.equal((await stuck).code, 'DAT_CONN_CLOSED');
    await near.close();
  });

  it('closes at once where the time is 0, or the signal has fired', async () => {
    for (const options of [{ timeoutMs: 0 }, { signal: AbortSignal.abort() }]) {
      const { near, far } = await pairOf();
      const waiting = failureOf(near.receive());
      await near.close(options);
      assert.equal((await waiting).code, 'DAT_CONN_CLOSED');
      await far.closed;
    }
  });

  it('tells a silent peer by its keep-alive, which is on by default', async () => {
    const { near, far, fabric } = await pairOf();
    const { closed } = near;
    const before = fabric.clock.now();
    fabric.partition([CLIENT], [SERVER]);
    const waiting = failureOf(near.receive());
    const error = await failureOf(closed);
    assert.deepEqual([error.code, error.reason], ['DAT_CONN_BROKEN', 'PEER_GONE']);
    assert.ok(fabric.clock.now() - before < 15_000_000);
    assert.ok(error.flightRecord.length > 0);
    const { code, operation, cause } = await waiting;
    assert.deepEqual([code, operation], ['DAT_CONN_BROKEN', 'conn.receive']);
    assert.match(String(cause), /FlowError: conn: the connection is broken/);
    await assert.rejects(
      async () => {
        for await (const message of near) message.release();
      },
      { code: 'DAT_CONN_BROKEN' },
    );
    await failureOf(far.closed);
  });

  it('does not ask a silent peer when keepAliveMs is 0', async () => {
    const { near, fabric } = await pairOf({ keepAliveMs: 0 });
    fabric.partition([CLIENT], [SERVER]);
    const none = await failureOf(near.receive({ timeoutMs: 600_000 }));
    assert.equal(none.code, 'DAT_TIMEOUT_EXPIRED');
    assert.ok(near.isOpen);
  });

  it('ends everything with its adapter', async () => {
    const { near, client, far } = await pairOf();
    const waiting = [failureOf(near.receive()), near.closed];
    await client.close();
    const [error] = await Promise.all(waiting);
    assert.match(String(error), /the interface adapter has been closed \[DAT_CONN_CLOSED\]/);
    await far.closed;
    assert.equal((await failureOf(near.send(bytesOf('x')))).code, 'DAT_CONN_CLOSED');
  });

  it('says why there is no connection', async () => {
    const world = await worldOf();
    const attempt = (options: Partial<ConnectOptions> = {}): Promise<unknown> =>
      connect(world.client, { address: SERVER, port: PORT, ...options });
    const refused = await failureOf(attempt());
    assert.deepEqual([refused.code, refused.operation], ['DAT_CONN_REFUSED', 'connect']);
    const listener = await listen(world.server, {
      port: PORT,
      answer: (request) => request.refuse(bytesOf('full')),
    });
    const rejected = await failureOf(attempt());
    assert.equal(rejected.code, 'DAT_CONN_REJECTED');
    assert.equal(textOf(rejected.peerPrivateData as Uint8Array).replaceAll('\0', ''), 'full');
    await listener.close();
    world.fabric.partition([CLIENT], [SERVER]);
    assert.equal((await failureOf(attempt({ timeoutMs: 100 }))).code, 'DAT_TIMEOUT_EXPIRED');
    const abort = new AbortController();
    const interrupted = failureOf(attempt({ signal: abort.signal }));
    abort.abort(new Error('no more'));
    assert.match(String((await interrupted).cause), /no more/);
    assert.equal((await failureOf(attempt())).code, 'DAT_CONN_UNREACHABLE');
    assert.equal(leftOf(world.client), NOTHING_LEFT);
  });

  it('refuses options that cannot be, before anything is made', async () => {
    const world = await worldOf();
    const refused = async (options: object, message: RegExp): Promise<void> => {
      const all = { address: SERVER, port: PORT, ...options };
      const error = await failureOf(connect(world.client, all));
      assert.match(error.message, message);
    };
    await refused({ port: 0 }, /port is 0; it must be an integer from 1 to 65535/);
    await refused({ keepAliveMs: 5 }, /keepAliveMs is 5; it must be 0 \(off\), or an integer/);
    await refused({ receives: { buffers: 0 } }, /receives: buffers is 0/);
    await refused({ recieves: {} }, /did you mean "receives"/);
    await refused({ privateData: new Uint8Array(57) }, /privateData has 57 bytes; at most 56 fit/);
    await refused({ address: 'nowhere' }, /nowhere/);
    await refused({ pz: world.server.createPz() }, /pz is a Pz; it must be a zone of the adapter/);
    await refused({ signal: AbortSignal.abort() }, /AbortSignal was aborted/);
    await refused({ attributes: { maxRecvDtos: -1 } }, /maxRecvDtos/);
    assert.match((await failureOf(connect({} as never, {} as never))).message, /ia is an object/);
    assert.equal(leftOf(world.client), NOTHING_LEFT);
  });

  it('gives everything back: memory, zone, endpoint, dispatcher', async () => {
    const { near, far, client, server, listener } = await pairOf();
    near.expose(64, 'read-write');
    await near.send(bytesOf('x'));
    await near.close();
    await far.closed;
    const lost = await far.receive();
    assert.equal(textOf(lost.bytes), 'x');
    await listener.close();
    assert.equal(leftOf(client), NOTHING_LEFT);
    assert.equal(leftOf(server), NOTHING_LEFT);
  });

  it('keeps the memory of lent messages beyond its end, until their release', async () => {
    const { near, far, server, listener } = await pairOf({ receives: { lend: true } });
    await near.send(bytesOf('kept'));
    const message: Message = await far.receive();
    await Promise.all([near.close(), far.closed, listener.close()]);
    assert.match(leftOf(server), /lmrs 1/);
    assert.equal(textOf(message.bytes), 'kept');
    message.release();
    assert.equal(leftOf(server), NOTHING_LEFT);
  });

  it('has nothing unhandled when it breaks and nobody looks', async () => {
    const { near, fabric } = await pairOf();
    const unhandled: unknown[] = [];
    const listener = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', listener);
    try {
      fabric.partition([CLIENT], [SERVER]);
      await failureOf(near.receive());
      await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual(unhandled, []);
    } finally {
      process.off('unhandledRejection', listener);
    }
  });
});

describe('flow: memory of the peer', () => {
  afterEach(async () => {
    for (const world of open.splice(0)) await world.close();
  });

  it('is written and read by grants that have gone through JSON', async () => {
    const { near, far } = await pairOf();
    const grant = far.expose(1 << 20, 'read-write');
    const remote = told(grant);
    assert.deepEqual(Object.keys(remote), ['address', 'rmrContext', 'length']);
    assert.match(remote.address, /^0x[0-9a-f]+$/);
    const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => i * 7);
    await near.write(bytes, remote, { offset: 1000 });
    assert.deepEqual(grant.bytes.subarray(1000, 301_000), bytes);
    const into = new Uint8Array(50_000);
    await near.read(into, remote, { offset: 1000 });
    assert.deepEqual(into, bytes.subarray(0, 50_000));
    const memory = near.ia.allocate(64, { pz: near.ep.pz });
    await near.read(memory.segment(0, 8), remote, { offset: 1000 });
    assert.deepEqual(memory.bytes.subarray(0, 8), bytes.subarray(0, 8));
    await near.read(new Uint8Array(0), remote);
    await near.write(new Uint8Array(0), remote);
  });

  it('tells the peer behind the bytes, where asked to', async () => {
    const { near, far } = await pairOf();
    const grant = far.expose(new Uint8Array(100), 'write');
    await near.write(bytesOf('result'), told(grant), { immediate: 5 });
    const message = await far.receive();
    assert.deepEqual(
      [message.immediate, message.writtenBytes, message.lengthBytes, message.bytes.length],
      [5, 6, 0, 0],
    );
    assert.equal(textOf(grant.bytes.subarray(0, 6)), 'result');
  });

  it('adds and swaps 64 bits', async () => {
    const { near, far } = await pairOf({ receives: { bufferBytes: 4 } });
    const grant = far.expose(64, 'atomic');
    const remote = told(grant);
    assert.equal(await near.fetchAdd(remote, 5n), 0n);
    assert.equal(await near.fetchAdd(remote, BigInt.asUintN(64, -2n)), 5n);
    assert.equal(await near.compareSwap(remote, 3n, 2n ** 64n - 1n), 3n);
    assert.equal(await near.compareSwap(remote, 3n, 0n), 2n ** 64n - 1n);
    const later = await near.fetchAdd(remote, 1n, { offset: 8 });
    assert.equal(later, 0n);
    assert.match((await failureOf(near.fetchAdd(remote, -1n))).message, /add is -1n/);
  });

  it('is not reached beyond the grant: refused here, with both sizes', async () => {
    const { near, far } = await pairOf();
    const remote = told(far.expose(100, 'read-write'));
    const error = await failureOf(near.write(new Uint8Array(60), remote, { offset: 41 }));
    assert.equal(error.code, 'DAT_LENGTH_ERROR');
    assert.match(error.message, /60 bytes from 41 on: the grant has 100/);
    assert.equal(
      (await failureOf(near.read(new Uint8Array(101), remote))).code,
      'DAT_LENGTH_ERROR',
    );
    await near.write(new Uint8Array(60), remote, { offset: 40 });
  });

  it('is no longer reached once revoked: a peer that tries breaks the connection', async () => {
    const { near, far } = await pairOf();
    const grant = far.expose(100, 'write');
    await near.write(bytesOf('a'), told(grant));
    grant.revoke();
    grant.revoke();
    assert.ok(grant.isRevoked);
    const error = await failureOf(near.write(bytesOf('b'), told(grant)));
    assert.deepEqual([error.code, error.reason], ['DAT_CONN_BROKEN', 'REMOTE_ACCESS']);
    assert.equal(grant.bytes[0], 'a'.charCodeAt(0));
  });

  it('is opened as far as was said, and no further', async () => {
    const { near, far } = await pairOf();
    const readable = far.expose(bytesOf('secret').slice(), 'read');
    const error = await failureOf(near.write(bytesOf('x'), told(readable)));
    assert.equal(error.reason, 'REMOTE_ACCESS');
    assert.equal(textOf(readable.bytes), 'secret');
    assert.throws(() => far.expose(8, 'exec' as never), { code: /DAT_INVALID_PARAMETER|DAT_CONN/ });
  });

  it('leaves the bytes of a read alone that has been given up', async () => {
    const { near, far, fabric } = await pairOf();
    const remote = told(far.expose(Uint8Array.of(1, 2, 3), 'read'));
    fabric.clog({ from: SERVER, to: CLIENT });
    const into = Uint8Array.of(9, 9, 9);
    assert.match((await failureOf(near.read(into, remote, { timeoutMs: 1 }))).message, /may take/);
    fabric.unclog({ from: SERVER, to: CLIENT });
    await near.read(new Uint8Array(3), remote);
    assert.deepEqual([...into], [9, 9, 9]);
  });

  it('is named by what can be an address', async () => {
    const { near, far } = await pairOf();
    const remote = told(far.expose(8, 'read-write'));
    const refused = async (change: object, message: RegExp): Promise<void> => {
      const error = await failureOf(near.write(Uint8Array.of(1), { ...remote, ...change }));
      assert.equal(error.code, 'DAT_INVALID_PARAMETER');
      assert.match(error.message, message);
    };
    await refused({ address: 'here' }, /remote\.address is "here"; it must be a bigint, or text/);
    await refused({ address: 5 }, /remote\.address is 5/);
    await refused({ rmrContext: -1 }, /remote\.rmrContext is -1/);
    await refused({ length: '8' }, /remote\.length is "8"/);
    await near.write(Uint8Array.of(1), { ...remote, address: BigInt(remote.address) });
    assert.match(
      (await failureOf(near.write('text' as never, remote))).message,
      /data is "text"; it must be a Uint8Array, or an LmrSegment/,
    );
  });
});
