// A connection as a byte stream, over mock: both halves, areas, ends of every kind, options.
import assert from 'node:assert/strict';
import { DatEventNumber } from '../../../../../core/index.js';
import { Adapter } from '../../../../../samples/ulp/rsocket/transport/adapter.js';
import { rsocket } from '../../../../../samples/ulp/rsocket/index.js';
import { Control, immediateOf, Operation } from '../../../../../samples/ulp/rsocket/wire/index.js';
import type { StreamError } from '../../../../../samples/ulp/socket/index.js';
import {
  CLIENT,
  counted,
  leftOf,
  listening,
  NOTHING_LEFT,
  type Pair,
  pairOf,
  PORT,
  SERVER,
  worldOf,
} from './stream-scene.js';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

async function leave(pair: Pair): Promise<void> {
  const { near, far, listener, client, server } = pair;
  near.stream.close();
  far.stream.close();
  await Promise.all([near.end(), far.end()]);
  await listener.close();
  assert.equal(leftOf(client), NOTHING_LEFT);
  assert.equal(leftOf(server), NOTHING_LEFT);
  await pair.close();
}

describe('rsocket: a stream', () => {
  it('carries bytes both ways, in order, many times the buffers', async () => {
    const pair = await pairOf({ receiveBytes: 2000, sendBytes: 2048, credits: 16 });
    const { near, far } = pair;
    const bytes = counted(0, 50_000);
    await Promise.all([
      near.write(bytes),
      far.write(bytes.subarray(0, 20_000), bytes.subarray(20_000)),
    ]);
    for (const seen of [near, far]) {
      await seen.until(() => seen.received.length === bytes.length);
      assert.deepEqual(seen.received, [...bytes]);
    }
    assert.equal(near.stream.takenBytes, 50_000);
    await leave(pair);
  });

  it('knows both addresses', async () => {
    const pair = await pairOf();
    const { near, far } = pair;
    assert.deepEqual(near.stream.remote, { address: SERVER, port: PORT });
    assert.deepEqual(far.stream.local, { address: SERVER, port: PORT });
    assert.equal(near.stream.local.address, CLIENT);
    assert.deepEqual(far.stream.remote, near.stream.local);
    assert.ok(near.stream.local.port > 0);
    await leave(pair);
  });

  it('keeps the process alive, unless it is told not to', async () => {
    const pair = await pairOf();
    const { near } = pair;
    const { ep, ['evd']: evd } = near.stream['link'];
    assert.deepEqual([ep.hasRef(), evd.hasRef()], [true, true]);
    near.stream.unref();
    assert.deepEqual([ep.hasRef(), evd.hasRef()], [false, false]);
    near.stream.ref();
    assert.deepEqual([ep.hasRef(), evd.hasRef()], [true, true]);
    await leave(pair);
  });

  it('is half open: what follows the end of one side still comes from the other', async () => {
    const pair = await pairOf();
    const { near, far } = pair;
    await near.write(bytesOf('question'));
    await near.shutdown();
    await far.until(() => far.stream.hasEnded);
    assert.equal(far.received.length, 8);
    await far.write(bytesOf('answer'));
    await far.shutdown();
    await near.until(() => near.stream.hasEnded);
    assert.equal(near.received.length, 6);
    await assert.rejects(near.write(bytesOf('more')), { code: 'EPIPE' });
    await leave(pair);
  });

  it('ends a write that waits for credits when the peer closes', async () => {
    const pair = await pairOf({ receiveBytes: 4096 }, {}, false);
    const writing = pair.near.write(new Uint8Array(100_000));
    await pair.sleep(1000);
    pair.far.stream.close();
    await assert.rejects(writing, { code: 'ECONNRESET', syscall: 'write' });
    await leave(pair);
  });

  it('tells all of an end that comes at once with the end of the connection', async () => {
    const pair = await pairOf({ receiveBytes: 4096 }, {}, false);
    const { near } = pair;
    const writing = near.write(new Uint8Array(100_000));
    await pair.sleep(1000);
    near.stream.onMessage(immediateOf(Operation.CONTROL, Control.DISCONNECT), 0);
    near.stream.onEnd({
      type: 'connection',
      number: DatEventNumber.DISCONNECTED,
      ep: pair.client.createEndpoint({ pz: pair.client.createPz() }),
      privateData: new Uint8Array(0),
    });
    await assert.rejects(writing, { code: 'ECONNRESET' });
    await near.until(() => near.stream.hasEnded);
    assert.equal(near.closed, undefined);
    near.stream.close();
    assert.equal(await near.end(), undefined);
    pair.far.stream.abort();
    await pair.listener.close();
    await pair.close();
  });

  it('is reset by an abort', async () => {
    const pair = await pairOf();
    pair.near.stream.abort();
    assert.equal(await pair.near.end(), undefined);
    assert.equal((await pair.far.end())?.code, 'ECONNRESET');
    await leave(pair);
  });

  it('is reset where the peer goes before it has all, though both have ended', async () => {
    const pair = await pairOf();
    const { near, far, fabric } = pair;
    await far.shutdown();
    await near.until(() => near.stream.hasEnded);
    fabric.partition([CLIENT], [SERVER], 'out');
    await near.write(counted(0, 1000));
    await near.shutdown();
    far.stream.abort();
    assert.equal((await near.end())?.code, 'ECONNRESET');
    await leave(pair);
  });

  it('is not reset by a peer that goes when both have ended', async () => {
    const pair = await pairOf();
    const { near, far } = pair;
    await far.shutdown();
    await near.until(() => near.stream.hasEnded);
    await near.write(counted(0, 1000));
    await near.shutdown();
    await far.until(() => far.stream.hasEnded);
    await pair.sleep(1000);
    far.stream.abort();
    await pair.sleep(100_000);
    assert.equal(near.closed, undefined);
    await leave(pair);
  });

  it('ends when its adapter is closed', async () => {
    const pair = await pairOf();
    await pair.client.close();
    assert.equal((await pair.near.end())?.code, 'ECONNABORTED');
    pair.far.stream.close();
    await pair.far.end();
    await pair.listener.close();
    await pair.close();
  });

  it('notices that an idle peer is gone, also while it waits for its credits', async () => {
    const pair = await pairOf({ receiveBytes: 4096, keepAliveMs: 1000 }, {}, false);
    const writing = pair.near.write(new Uint8Array(100_000));
    await pair.sleep(10_000);
    pair.fabric.partition([CLIENT], [SERVER]);
    await assert.rejects(writing, { code: 'ECONNRESET' });
    assert.equal((await pair.far.end())?.code, 'ECONNRESET');
    await leave(pair);
  });

  it('closes in bounded time where the peer does not answer', async () => {
    const pair = await pairOf({ closeTimeoutMs: 100, keepAliveMs: 0 });
    pair.fabric.partition([CLIENT], [SERVER]);
    const from = pair.fabric.clock.now();
    pair.near.stream.close();
    assert.equal(await pair.near.end(), undefined);
    assert.ok(pair.fabric.clock.now() - from < 200_000);
    pair.far.stream.abort();
    await leave(pair);
  });

  it('asks an idle peer for a sign of life as often as it is told', async () => {
    const pair = await pairOf({ keepAliveMs: 0 });
    let writes = 0;
    pair.fabric.tap = (event): void => {
      if (event === 'sent') writes++;
    };
    pair.near.stream.setKeepAlive(100);
    await pair.sleep(1_050_000);
    // Each is a write of no bytes and its acknowledgement.
    assert.ok(writes >= 16 && writes <= 24, `${writes} packets`);
    pair.near.stream.setKeepAlive(0);
    await pair.sleep(1_000_000);
    assert.ok(writes <= 24, `${writes} packets`);
    await leave(pair);
  });

  it('writes into areas that the peer has published, before what follows', async () => {
    const pair = await pairOf({ iomapSlots: 2 });
    const { near, far } = pair;
    const area = far.stream.iomap({ memory: 100_000, offset: 5000n });
    await far.write(bytesOf('published'));
    await near.until(() => near.received.length > 0);
    const bytes = counted(7, 90_000);
    near.stream.iowrite([bytes], 6000n, (error) => assert.equal(error, undefined));
    await near.write(bytesOf('written'));
    await far.until(() => far.received.length > 0);
    assert.deepEqual(area.bytes.subarray(1000, 91_000), bytes);
    const beyond = new Promise<StreamError | undefined>((resolve) =>
      near.stream.iowrite([bytes], 100_000n, resolve),
    );
    assert.match(String(await beyond), /EIO.*the peer has not published offset 105000/);
    area.unmap();
    far.stream.iomap({ memory: 10 });
    far.stream.iomap({ memory: 10 });
    assert.throws(() => far.stream.iomap({ memory: 10 }), /the peer has announced 2/);
    await leave(pair);
  });

  it('stalls over no number of areas: each gives its credit back', async () => {
    const pair = await pairOf({ iomapSlots: 1, credits: 16 });
    const { near, far } = pair;
    for (let n = 1; n <= 50; n++) {
      const area = near.stream.iomap({ memory: 8 });
      await near.write(Uint8Array.of(n));
      await far.until(() => far.received.length === n);
      area.unmap();
    }
    await leave(pair);
  });
});

describe('rsocket: connecting', () => {
  it('is refused where nothing listens, and where the listener does not want to', async () => {
    const world = await worldOf();
    const client = rsocket(world.client);
    const refused = { code: 'ECONNREFUSED', syscall: 'connect', address: SERVER, port: PORT };
    await assert.rejects(client.connect({ address: SERVER, port: PORT }), refused);
    const listener = await listening(rsocket(world.server), () => assert.fail('no stream'), {
      admit: () => false,
    });
    await assert.rejects(client.connect({ address: SERVER, port: PORT }), refused);
    await listener.close();
    assert.equal(leftOf(world.client), NOTHING_LEFT);
    await world.close();
  });

  it('ends with its signal, and nothing is left', async () => {
    const world = await worldOf();
    world.fabric.partition([CLIENT], [SERVER]);
    const abort = new AbortController();
    const { signal } = abort;
    const connecting = rsocket(world.client).connect({ address: SERVER, port: PORT, signal });
    await world.sleep(1000);
    abort.abort(new Error('enough'));
    await assert.rejects(connecting, /enough/);
    assert.equal(leftOf(world.client), NOTHING_LEFT);
    await assert.rejects(
      rsocket(world.client).connect({ address: SERVER, port: PORT, signal }),
      /enough/,
    );
    await world.close();
  });

  it('is not reached: ETIMEDOUT or EHOSTUNREACH', async () => {
    const world = await worldOf();
    world.fabric.partition([CLIENT], [SERVER]);
    const connecting = rsocket(world.client).connect({ address: SERVER, port: PORT });
    await assert.rejects(connecting, ({ code }: StreamError) =>
      ['ETIMEDOUT', 'EHOSTUNREACH'].includes(code),
    );
    await world.close();
  });

  it('has a port for one listener', async () => {
    const world = await worldOf();
    const server = rsocket(world.server);
    const listener = await listening(server, () => undefined);
    const again = listening(server, () => undefined);
    await assert.rejects(again, { code: 'EADDRINUSE', syscall: 'listen', port: PORT });
    await listener.close();
    await world.close();
  });

  it('is of the own address of the adapter alone', async () => {
    const world = await worldOf();
    const given = { address: SERVER, port: PORT, localAddress: '192.0.2.9' };
    await assert.rejects(rsocket(world.client).connect(given), { code: 'EADDRNOTAVAIL' });
    const listen = listening(rsocket(world.server), () => undefined, { address: '192.0.2.9' });
    await assert.rejects(listen, { code: 'EADDRNOTAVAIL' });
    await world.close();
  });

  it('tells a listener that its adapter has been closed', async () => {
    const world = await worldOf();
    const told = new Promise<StreamError>((onError) => {
      void listening(rsocket(world.server), () => undefined, { port: 0, onError });
    });
    await world.sleep(10);
    await world.server.close();
    assert.equal((await told).code, 'ECONNABORTED');
    await world.close();
  });

  it('shares one zone among all connections of an adapter', async () => {
    const world = await worldOf();
    const [one, other] = [Adapter.join(world.client), Adapter.join(world.client)];
    assert.equal(one, other);
    one.leave();
    assert.equal(one.pz.isFreed, false);
    other.leave();
    assert.equal(one.pz.isFreed, true);
    await world.close();
  });

  const REFUSED: readonly (readonly [object, RegExp])[] = [
    [{ receiveBytes: 1 }, /receiveBytes is 1, must be an integer 2 to 1073741824/],
    [{ receiveBytes: 1001 }, /receiveBytes is 1001, must be even/],
    [{ sendBytes: 100 }, /sendBytes is 100, must be an integer 2048 to/],
    [{ credits: 15 }, /credits is 15, must be an integer 16 to 32768/],
    [{ sends: 1.5 }, /sends is 1.5, must be an integer 16 to 32768/],
    [{ messageBytes: 2 ** 29 }, /messageBytes is 536870912, must be an integer 1 to 536870911/],
    [{ keepAliveMs: 9 }, /keepAliveMs is 9, must be 0, or 10 on/],
    [{ iomapSlots: -1 }, /iomapSlots is -1, must be an integer 0 to 32512/],
  ];
  for (const [options, message] of REFUSED) {
    it(`refuses options: ${JSON.stringify(options)}`, async () => {
      const world = await worldOf();
      assert.throws(() => rsocket(world.client, options), message);
      await world.close();
    });
  }
});
