// Channels over connections of mock: what a consumer sees, that no RNR NAK is ever sent, and
// interleavings by seed in which each promise ends once and nothing comes twice or is lost.
import assert from 'node:assert/strict';
import {
  acceptChannel,
  type Channel,
  channel,
  type ChannelOptions,
  offerChannel,
  peerPrivateDataOf,
  toDuplex,
  toWebStreams,
} from '../../../../core/flow/channel/index.js';
import { Departures } from '../../../../core/flow/channel/departures.js';
import { Credits } from '../../../../core/flow/channel/credits.js';
import { Receiver } from '../../../../core/flow/channel/receiver.js';
import { Sender } from '../../../../core/flow/channel/sender.js';
import { connect, type Connection, type FlowError, listen } from '../../../../core/flow/index.js';
import type { FabricOptions } from '../../../../providers/mock/index.js';
import { SeededRandom } from '../../../../plugins/faults/grammar/seeded-random.js';
import {
  CLIENT,
  type FlowWorld,
  flowWorld,
  failureOf,
  leftOf,
  PORT,
  SERVER,
} from '../../../support/flow-scene.js';
import { channelConns } from '../../../support/channel-scene.js';

const open: FlowWorld[] = [];
const SMALL: ChannelOptions = { buffers: 3, bufferBytes: 64, maxMessageBytes: 5000 };

const SEEDS = 32;
/** How long everything may take to end, of virtual time. */
const PATIENCE_US = 300_000_000;
const TROUBLES = [
  'close at once',
  'killed peer',
  'partition that heals',
  'partition for ever',
] as const;

type Method = (this: unknown, ...args: unknown[]) => unknown;
const nothing = (): Method => () => undefined;
const PLANTS = [
  ['a message given up goes on', Departures, 'giveUp', nothing, /was given up|twice|order/],
  ['messages are taken and lost', Receiver, 'assemble', nothing, /is lost/],
  ['sends of a channel that has ended are forgotten', Sender, 'end', nothing, /has not ended/],
  ['frames that have failed count as sent', Sender, 'completed', withoutError, /is lost/],
  ['frames are sent without credits', Credits, 'maySend', ofAnyMessage, /credits are -/],
  ['the buffers of a channel are kept', Sender, 'closePool', nothing, /memory is left/],
] as const;

function ofAnyMessage(maySend: Method): Method {
  return function (kind) {
    return kind !== 'CREDIT' || maySend.call(this, kind);
  };
}

function withoutError(completed: Method): Method {
  return function (...args) {
    return completed.apply(this, args.slice(0, 3));
  };
}

interface Pair {
  readonly world: FlowWorld;
  readonly near: Channel;
  readonly far: Channel;
  readonly nearConn: Connection;
  readonly farConn: Connection;
}

async function pairOf(options = SMALL, fabric: FabricOptions = {}): Promise<Pair> {
  const world = await flowWorld(fabric);
  open.push(world);
  const [nearConn, farConn] = await channelConns(world, options, Uint8Array.of(1, 2, 3));
  const [near, far] = [channel(nearConn, options), channel(farConn, options)];
  return { world, near, far, nearConn, farConn };
}

const pattern = (length: number, seed: number): Uint8Array =>
  Uint8Array.from({ length }, (_, i) => (i * 7 + seed) & 0xff);
const lengthsOf = (messages: readonly Uint8Array[]): number[] => messages.map((m) => m.length);

async function all(from: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const messages: Uint8Array[] = [];
  for await (const message of from) messages.push(message);
  return messages;
}

describe('channel over a connection', () => {
  afterEach(async () => {
    for (const world of open.splice(0)) await world.close();
  });

  it('carries messages of any length, whole and in order, both ways', async () => {
    const { near, far, farConn } = await pairOf();
    assert.deepEqual([...peerPrivateDataOf(farConn).subarray(0, 4)], [1, 2, 3, 0]);
    const lengths = [0, 1, 56, 57, 112, 5000, 3];
    const sending = Promise.all(lengths.map((length, i) => near.send(pattern(length, i))));
    for (const [i, length] of lengths.entries()) {
      assert.deepEqual(await far.receive(), pattern(length, i));
    }
    await sending;
    await far.send([pattern(50, 1), new Uint8Array(0), pattern(50, 2)]);
    const joined = Uint8Array.from([...pattern(50, 1), ...pattern(50, 2)]);
    assert.deepEqual(await near.receive(), joined);
  });

  it('never meets an RNR NAK, however slow the consumer is', async () => {
    const { near, far, nearConn, farConn } = await pairOf();
    const flood = Promise.all(Array.from({ length: 200 }, (_, i) => near.send(pattern(100, i))));
    const back = Promise.all(Array.from({ length: 200 }, (_, i) => far.send(pattern(90, i))));
    for (let i = 0; i < 200; i++) assert.deepEqual(await far.receive(), pattern(100, i));
    for (let i = 0; i < 200; i++) assert.deepEqual(await near.receive(), pattern(90, i));
    await Promise.all([flood, back]);
    assert.deepEqual(
      [nearConn, farConn].map((conn) => rnrNaks(conn)),
      [0, 0],
    );
  });

  it('the same flood without a channel meets none either: ACKs carry credits', async () => {
    const world = await flowWorld();
    open.push(world);
    const [near, far] = await channelConns(world, SMALL);
    const flood = Promise.all(Array.from({ length: 20 }, () => near.send(pattern(50, 1))));
    for (let i = 0; i < 20; i++) {
      const message = await far.receive();
      await new Promise((resolve) => setImmediate(resolve));
      message.release();
    }
    await flood;
    assert.equal(rnrNaks(far), 0);
  });

  it('names both lengths of a message that is too long, and sends nothing', async () => {
    const { near, far } = await pairOf();
    const error = await failureOf(near.send(pattern(5001, 0)));
    assert.equal(error.code, 'DAT_LENGTH_ERROR');
    assert.match(error.message, /5001 bytes: the peer takes at most 5000/);
    await near.send(pattern(1, 1));
    assert.equal((await far.receive()).length, 1);
  });

  it('a send that is given up half way does not arrive; what follows does', async () => {
    const { near, far } = await pairOf();
    const stop = new AbortController();
    const half = failureOf(near.send(pattern(4000, 0), { signal: stop.signal }));
    const waiting = failureOf(near.send(pattern(9, 0), { signal: stop.signal }));
    const last = near.send(pattern(5, 5));
    stop.abort();
    assert.equal((await half).code, 'DAT_INTERRUPTED_CALL');
    assert.match((await half).message, /a part of it has been sent, and it does not arrive/);
    assert.match((await waiting).message, /nothing of it has been sent/);
    assert.deepEqual(await far.receive(), pattern(5, 5));
    await last;
  });

  it('a receive that is given up loses nothing', async () => {
    const { near, far } = await pairOf();
    const late = await failureOf(far.receive({ timeoutMs: 1 }));
    assert.equal(late.code, 'DAT_TIMEOUT_EXPIRED');
    await Promise.all([near.send(pattern(300, 3)), far.receive()]).then(([, message]) =>
      assert.deepEqual(message, pattern(300, 3)),
    );
  });

  it('end: the peer takes what has come, then its iteration ends; it can still send', async () => {
    const { near, far } = await pairOf();
    const sent = [1, 200, 0].map((length) => near.send(pattern(length, 0)));
    const ended = near.end();
    assert.deepEqual(lengthsOf(await all(far)), [1, 200, 0]);
    await Promise.all([...sent, ended]);
    assert.equal((await failureOf(near.send(pattern(1, 0)))).code, 'DAT_INVALID_STATE');
    assert.equal((await failureOf(far.receive())).code, 'DAT_CONN_ENDED');
    await far.send(pattern(9, 9));
    assert.deepEqual(await near.receive(), pattern(9, 9));
  });

  it('close: what has been sent arrives, receives here end, the peer is told', async () => {
    const { near, far } = await pairOf();
    const receiving = failureOf(near.receive());
    const sent = near.send(pattern(150, 1));
    const closed = near.close();
    assert.deepEqual(lengthsOf(await all(far)), [150]);
    await Promise.all([sent, closed]);
    assert.equal((await receiving).code, 'DAT_CONN_CLOSED');
    assert.equal((await failureOf(near.send(pattern(1, 1)))).code, 'DAT_CONN_CLOSED');
    assert.equal((await failureOf(far.receive())).code, 'DAT_CONN_ENDED');
  });

  it('tells the end of its connection in the words of that, with the same cause', async () => {
    const { far, nearConn } = await pairOf();
    const receiving = failureOf(far.receive());
    await nearConn.close();
    const { message, cause, flightRecord } = await receiving;
    const says = 'the peer has ended the connection: the peer disconnected [DAT_CONN_ENDED]';
    assert.equal(message, `channel.receive: ${says}`);
    assert.equal(String(cause), `FlowError: conn: ${says}`);
    assert.ok(flightRecord.length > 0);
    assert.deepEqual((cause as FlowError).flightRecord, [], 'a log of both has it once');
  });

  it('is not open, and its iteration throws, when the connection has broken', async () => {
    const { world, near, far } = await pairOf();
    assert.ok(near.isOpen && far.isOpen);
    const iterated = failureOf(all(far));
    const sent = failureOf(far.send(pattern(3000, 1)));
    world.fabric.partition([CLIENT], [SERVER]);
    assert.equal((await sent).code, 'DAT_CONN_BROKEN');
    assert.deepEqual([(await iterated).code, far.isOpen], ['DAT_CONN_BROKEN', false]);
    assert.equal((await failureOf(far.send(pattern(1, 1)))).code, 'DAT_CONN_BROKEN');
  });

  for (const [name, options] of [
    ['without time', { timeoutMs: 0 }],
    ['by a signal that has fired', { signal: AbortSignal.abort() }],
  ] as const) {
    it(`close ${name} drops what has come, and tells the peer nothing but its end`, async () => {
      const { near, far } = await pairOf();
      await far.send(pattern(2, 1));
      const receiving = failureOf(far.receive());
      await near.close(options);
      assert.match((await receiving).message, /the peer has ended the connection/);
      assert.equal((await failureOf(near.receive())).code, 'DAT_CONN_CLOSED');
      assert.equal(near.isOpen, false);
    });
  }

  it('drops what nothing has taken, at once', async () => {
    const { near, far } = await pairOf();
    await far.send(pattern(2, 1));
    const closed = near.close();
    assert.equal((await failureOf(near.receive())).code, 'DAT_CONN_CLOSED');
    await closed;
  });

  it('refuses what is no message, and options that cannot be', async () => {
    const { near } = await pairOf();
    for (const data of ['text', ['text'], {}, [new Uint8Array(1), 7]] as never[]) {
      const error = await failureOf(near.send(data));
      assert.equal(error.code, 'DAT_INVALID_PARAMETER');
      assert.match(
        error.message,
        /^channel\.send: data is .*; it must be a Uint8Array, or an array/,
      );
    }
    const late = { timeoutMs: -1 };
    for (const wrong of [near.send(pattern(1, 1), late), near.receive(late), near.end(late)]) {
      assert.match((await failureOf(wrong)).message, /timeoutMs is -1/);
    }
    assert.ok(near.isOpen);
  });

  it('a peer that breaks the protocol is told apart, and others go on', async () => {
    const world = await flowWorld();
    open.push(world);
    const [nearConn, farConn] = await channelConns(world, SMALL);
    const far = channel(farConn, SMALL);
    const receiving = failureOf(far.receive());
    await nearConn.send(Uint8Array.of(9, 0, 0, 0, 0, 0, 0, 0)).catch(() => undefined);
    const error = await receiving;
    assert.equal(error.code, 'DAT_CONN_BROKEN');
    assert.equal(error.reason, 'PEER_PROTOCOL');
    assert.match(error.message, /frame.kind is 9; it must be an integer from 1 to 4/);
    assert.ok(!nearConn.isOpen || (await nearConn.closed, true));
    const listener = await listen(world.server, { port: PORT + 1, ...acceptChannel(SMALL) });
    const offer = offerChannel(SMALL);
    const [one, other] = await Promise.all([
      connect(world.client, { address: SERVER, port: PORT + 1, ...offer }),
      listener.accept(),
    ]);
    await channel(one, SMALL).send(pattern(3, 3));
    assert.deepEqual(await channel(other, SMALL).receive(), pattern(3, 3));
  });

  it('is a Duplex: bytes arrive in order, and the end of the stream with them', async () => {
    const { near, far } = await pairOf();
    const [one, other] = [toDuplex(near), toDuplex(far)];
    const bytes = Buffer.from(pattern(12_000, 5));
    one.end(bytes);
    const came: Buffer[] = [];
    for await (const chunk of other) came.push(chunk as Buffer);
    assert.ok(Buffer.concat(came).equals(bytes));
    one.destroy();
    other.destroy();
  });

  it('is web streams: a chunk is a message', async () => {
    const { near, far } = await pairOf();
    const writer = toWebStreams(near).writable.getWriter();
    const { readable } = toWebStreams(far);
    const written = [writer.write(pattern(1, 1)), writer.write(pattern(300, 2)), writer.close()];
    assert.deepEqual(lengthsOf(await all(readable)), [1, 300]);
    await Promise.all(written);
  });

  it('an abort of the web stream ends the channel at once', async () => {
    const { near, far } = await pairOf();
    const receiving = failureOf(far.receive());
    await toWebStreams(near).writable.abort(new Error('enough'));
    assert.match((await receiving).message, /the peer has ended the connection/);
    assert.equal(near.isOpen, false);
  });

  it('ends every promise once, and loses nothing, by seed', async () => {
    const met = new Set<string>();
    for (let seed = 1; seed <= SEEDS; seed++) met.add(await scramble(seed));
    for (const trouble of TROUBLES) assert.ok(met.has(`${trouble}: over`), trouble);
    assert.ok(met.has('partition that heals: goes on'), 'no partition was survived');
  });

  for (const [name, owner, method, bug, finds] of PLANTS) {
    it(`finds a planted bug: ${name}`, async () => {
      const prototype = owner.prototype as unknown as Record<string, unknown>;
      const whole = prototype[method] as Method;
      prototype[method] = bug(whole);
      try {
        const seeds = async (): Promise<void> => {
          for (let seed = 1; seed <= SEEDS; seed++) await scramble(seed);
        };
        await assert.rejects(seeds, finds);
      } finally {
        prototype[method] = whole;
      }
    });
  }
});

/** Counted by the device of that side. */
const rnrNaks = ({ ia }: Connection): number => {
  const device = ia.deviceCounters();
  return (device['rnrNaksSent'] ?? NaN) + (device['rnrNaksReceived'] ?? NaN);
};

/**
 * Sends, receives, signals, timeouts and losses in an order of chance; in the midst of it one of
 * the troubles, and at last the end of both sides.
 * @returns the trouble, and whether the connection has outlived it
 */
async function scramble(seed: number): Promise<string> {
  const random = new SeededRandom(seed);
  const trouble = TROUBLES[seed % TROUBLES.length]!;
  const { world, near, far, nearConn, farConn } = await pairOf(SMALL, {
    seed,
    link: { lossPercent: seed % 3 },
  });
  const { fabric } = world;
  const sides = [near, far] as const;
  const sleep = (us: number): Promise<void> =>
    new Promise((resolve) => fabric.clock.at(fabric.clock.now() + us, resolve));
  const sent: { from: number; index: number; arrives: 'yes' | 'no' | 'maybe' }[] = [];
  const settled: Promise<void>[] = [];
  const received: [number[], number[]] = [[], []];
  let indices = 0;
  const troubleAt = 20 + random.below(30);
  for (let step = 0; step < 60; step++) {
    const from = random.below(2);
    const stop = new AbortController();
    const bound = random.below(10);
    const options =
      bound < 3 ? { signal: stop.signal } : bound < 5 ? { timeoutMs: random.below(30) / 10 } : {};
    if (random.percent(50)) {
      const record = { from, index: indices++, arrives: 'maybe' as 'yes' | 'no' | 'maybe' };
      sent.push(record);
      const message = pattern(2 + random.below(200), 0);
      new DataView(message.buffer).setUint16(0, record.index);
      const sending = sides[from]!.send(message, options);
      settled.push(
        sending.then(
          () => void (record.arrives = 'yes'),
          (error: Error) => {
            if (/does not arrive/.test(error.message)) record.arrives = 'no';
          },
        ),
      );
    } else {
      const taking = sides[from]!.receive(options);
      settled.push(
        taking.then(
          (message) => {
            const { buffer, byteOffset } = message;
            received[from]!.push(new DataView(buffer, byteOffset).getUint16(0));
          },
          () => undefined,
        ),
      );
    }
    if (random.percent(40)) await new Promise((resolve) => setImmediate(resolve));
    if (random.percent(10)) await sleep(random.below(2000));
    if (random.percent(20)) stop.abort();
    if (step === troubleAt && trouble !== 'close at once') {
      fabric.partition([CLIENT], [SERVER]);
      // A process that is gone: what it would still say is lost.
      if (trouble === 'killed peer') await world.server.close();
      if (trouble === 'partition that heals')
        void sleep(random.below(3000)).then(() => fabric.heal());
    }
    for (const side of sides) checkCredits(side, `seed ${seed}, step ${step}`);
  }
  if (trouble === 'close at once') await nearConn.close({ timeoutMs: 0 });
  if (trouble === 'partition that heals' && random.percent(30)) await nearConn.close();
  const rests = sides.map(async (side, at) => {
    for await (const message of side) {
      received[at]!.push(new DataView(message.buffer, message.byteOffset).getUint16(0));
    }
  });
  const ends = await ended(sleep, seed, [near.end(), far.end(), ...rests, ...settled]);
  const goesOn = ends.every(({ status }) => status === 'fulfilled');
  for (const at of [0, 1] as const) {
    const came = received[at];
    const label = `seed ${seed}, side ${at}`;
    assert.equal(new Set(came).size, came.length, `${label}: twice`);
    const known = sent.filter(({ from }) => from !== at);
    const order = known.map(({ index }) => index).filter((index) => came.includes(index));
    assert.deepEqual(came, order, `${label}: order`);
    // What the device of a process has taken is gone with the process.
    const isGone = at === 1 && trouble === 'killed peer';
    for (const { index, arrives } of known) {
      if (arrives === 'no') assert.ok(!came.includes(index), `${label}: ${index} was given up`);
      if (arrives === 'yes' && !isGone) {
        assert.ok(came.includes(index), `${label}: ${index} is lost`);
      }
    }
  }
  if (trouble !== 'killed peer') {
    assert.deepEqual([rnrNaks(nearConn), rnrNaks(farConn)], [0, 0], `seed ${seed}`);
  }
  await ended(
    sleep,
    seed,
    sides.map((side) => side.close()),
  );
  const survivors = trouble === 'killed peer' ? [world.client] : [world.client, world.server];
  for (const ia of survivors) {
    assert.match(leftOf(ia), /^eps 0 lmrs 0 /, `seed ${seed}: memory is left`);
  }
  await world.close();
  open.splice(open.indexOf(world), 1);
  return `${trouble}: ${goesOn ? 'goes on' : 'over'}`;
}

function checkCredits(side: Channel, label: string): void {
  const { credits, owed } = JSON.parse(JSON.stringify(side)) as Record<string, number>;
  assert.ok(credits! >= 0 && credits! <= 2, `${label}: credits are ${credits}`);
  assert.ok(owed! >= 0 && owed! <= 2, `${label}: owed are ${owed}`);
}

/** How each of them ends, which takes no longer than a keep-alive and all retries. */
async function ended(
  sleep: (us: number) => Promise<void>,
  seed: number,
  promises: readonly Promise<unknown>[],
): Promise<PromiseSettledResult<unknown>[]> {
  const late = sleep(PATIENCE_US).then(() => undefined);
  const results = await Promise.race([Promise.allSettled(promises), late]);
  assert.ok(results !== undefined, `seed ${seed}: a promise has not ended`);
  return results;
}
