/** How a channel is made of a connection: what is announced, and what is refused. */
import assert from 'node:assert/strict';
import {
  acceptChannel,
  channel,
  type ChannelOptions,
  offerChannel,
} from '../../../../core/flow/channel/index.js';
import { connect, type Connection, FlowError, listen } from '../../../../core/flow/index.js';
import { channelConns } from '../../../support/channel-scene.js';
import { failureOf, type FlowWorld, flowWorld, PORT, SERVER } from '../../../support/flow-scene.js';

const open: FlowWorld[] = [];
const SMALL: ChannelOptions = { buffers: 3, bufferBytes: 64, maxMessageBytes: 5000 };

const pattern = (length: number, seed: number): Uint8Array =>
  Uint8Array.from({ length }, (_, i) => (i * 7 + seed) & 0xff);

describe('channel: making one', () => {
  afterEach(async () => {
    for (const world of open.splice(0)) await world.close();
  });

  it('a peer that announces no channel is refused, with the reason', async () => {
    const world = await flowWorld();
    open.push(world);
    await listen(world.server, { port: PORT, ...acceptChannel() });
    const error = await failureOf(connect(world.client, { address: SERVER, port: PORT }));
    assert.equal(error.code, 'DAT_CONN_REJECTED');
    const text = new TextDecoder().decode(error.peerPrivateData);
    assert.match(text, /^channel: announcement.magic is 0; it must be/);
  });

  it('channel() of a connection without an announcement fails, and closes it', async () => {
    const world = await flowWorld();
    open.push(world);
    const listener = await listen(world.server, { port: PORT });
    const [near] = await Promise.all([
      connect(world.client, { address: SERVER, port: PORT, ...offerChannel() }),
      listener.accept(),
    ]);
    assert.throws(
      () => channel(near),
      (error: unknown) => {
        assert.ok(FlowError.isFlowError(error));
        return error.code === 'DAT_CONN_BROKEN' && /announced no channel/.test(error.message);
      },
    );
    await near.closed;
  });

  it('channel() has the limits that were announced, and refuses others', async () => {
    const world = await flowWorld();
    open.push(world);
    const [near, far] = await channelConns(world, SMALL);
    for (const [options, says] of [
      [{ buffers: 16 }, /^channel: buffers is 16; it must be 3, as was announced to the peer/],
      [{ ...SMALL, bufferBytes: 128 }, /bufferBytes is 128; it must be 64, as was announced/],
      [{ maxMessageBytes: 5001 }, /maxMessageBytes is 5001; it must be 5000, as was announced/],
      [{ buffers: 1 }, /buffers is 1; it must be an integer from 2/],
    ] as const) {
      assert.throws(() => channel(near, options), {
        code: 'DAT_INVALID_PARAMETER',
        message: says,
      });
    }
    assert.ok(near.isOpen, 'a mistake of the caller is no end of the connection');
    const [one, other] = [channel(near), channel(far, { maxMessageBytes: 5000 })];
    const sent = one.send(pattern(5000, 1));
    assert.deepEqual(await other.receive(), pattern(5000, 1));
    await sent;
    assert.equal((await failureOf(one.send(pattern(5001, 1)))).code, 'DAT_LENGTH_ERROR');
  });

  it('channel() refuses other receives, and a connection that announced none here', async () => {
    const world = await flowWorld();
    open.push(world);
    const receives = { buffers: 8, bufferBytes: 64, lend: true };
    const listener = await listen(world.server, {
      ...acceptChannel(SMALL),
      ...{ port: PORT, receives },
    });
    const { privateData } = offerChannel(SMALL);
    const [near, far] = await Promise.all([
      connect(world.client, { address: SERVER, port: PORT, privateData }),
      listener.accept(),
    ]);
    assert.throws(() => channel(far), {
      code: 'DAT_INVALID_PARAMETER',
      message: /conn\.receives\.buffers is 8; it must be 3, as was announced to the peer/,
    });
    assert.throws(() => channel(near), { message: /conn\.receives\.buffers is 16; it must be 3/ });
    const plain = await listen(world.server, { port: PORT + 1 });
    const [other] = await Promise.all([
      connect(world.client, { address: SERVER, port: PORT + 1 }),
      plain.accept(),
    ]);
    assert.throws(() => channel(other), {
      code: 'DAT_INVALID_STATE',
      message: /made without offerChannel or acceptChannel/,
    });
  });

  for (const [name, call, says] of [
    ['buffers', () => offerChannel({ buffers: 1 }), /buffers is 1; it must be an integer from 2/],
    ['bufferBytes', () => acceptChannel({ bufferBytes: 8 }), /bufferBytes is 8; .* from 16/],
    ['private data', () => offerChannel({}, new Uint8Array(37)), /length is 37; .* at most 36/],
    ['no connection', () => channel({} as Connection), /conn is .*; it must be a Connection/],
  ] as const) {
    it(`checks ${name}`, () => {
      assert.throws(call, { name: 'FlowError', code: 'DAT_INVALID_PARAMETER', message: says });
    });
  }
});
