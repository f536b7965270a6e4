// A peer that sends mutated frames to a live channel, a hundred thousand by seed: each connection
// ends with what it has broken, its memory comes back, and a channel beside it never notices.
import assert from 'node:assert/strict';
import {
  acceptChannel,
  type Channel,
  channel,
  ChannelProtocolError,
  offerChannel,
} from '../../../../core/flow/channel/index.js';
import { connect, type Connection, FlowError, listen } from '../../../../core/flow/index.js';
import type { Listener } from '../../../../core/flow/listener.js';
import { SeededRandom } from '../../../../plugins/faults/grammar/seeded-random.js';
import { type FlowWorld, flowWorld, leftOf, PORT, SERVER } from '../../../support/flow-scene.js';

const FRAMES = 100_000;
const LIMITS = { buffers: 4, bufferBytes: 64, maxMessageBytes: 100 };
const HEADER_BYTES = 8;
const MOST_PAYLOAD = LIMITS.bufferBytes - HEADER_BYTES;
/** After so many lives the channel beside them is used, and what is left is looked at. */
const LIVES_A_CHECK = 100;
const MESSAGE = 1;

/** What frames a peer sends next, some of them wrong. */
class Liar {
  private missingBytes = 0;

  constructor(private readonly random: SeededRandom) {}

  next(): Uint8Array {
    const { random } = this;
    const remaining = this.missingBytes || random.below(LIMITS.maxMessageBytes + 1);
    const payload = Math.min(remaining, 1 + random.below(MOST_PAYLOAD));
    this.missingBytes = remaining - payload;
    const data = new Uint8Array(HEADER_BYTES + payload);
    const view = new DataView(data.buffer);
    data[0] = MESSAGE;
    view.setUint32(4, remaining);
    if (random.percent(4)) data[random.below(HEADER_BYTES)]! ^= 1 << random.below(8);
    return random.percent(1) ? data.subarray(0, random.below(data.length)) : data;
  }
}

/** How the victim's channel has ended. */
async function endOf(victim: Channel, random: SeededRandom): Promise<unknown> {
  try {
    for await (const message of victim) {
      assert.ok(message.length <= LIMITS.maxMessageBytes);
      // Answers take credits along, or none are there and it stays at CREDIT frames.
      if (random.percent(20)) victim.send(message.subarray(0, 1)).catch(() => undefined);
    }
    return undefined;
  } catch (error) {
    return error;
  }
}

class Attack {
  frames = 0;
  breaches = 0;
  ended = 0;
  private readonly random = new SeededRandom(21);
  private readonly fields = new Set<string>();

  constructor(
    private readonly world: FlowWorld,
    private readonly listener: Listener,
  ) {}

  /** What has been broken. */
  get kinds(): number {
    return this.fields.size;
  }

  /** One connection, until the victim has enough of it. */
  async live(): Promise<void> {
    const { world, listener, random } = this;
    const peer = { address: SERVER, port: PORT };
    const [raw, conn] = await Promise.all([
      connect(world.client, { ...peer, ...offerChannel(LIMITS), maxMessageBytes: 64 }),
      listener.accept(),
    ]);
    const victim = channel(conn);
    const end = endOf(victim, random);
    const drained = this.drain(raw);
    const liar = new Liar(random);
    while (raw.isOpen) {
      this.frames++;
      await raw.send(liar.next()).catch(() => undefined);
    }
    this.judge(await end);
    await drained;
    await victim.close();
    await raw.close();
  }

  private async drain(raw: Connection): Promise<void> {
    try {
      for await (const message of raw) message.release();
    } catch (error) {
      assert.ok(FlowError.isFlowError(error), String(error));
    }
  }

  private judge(error: unknown): void {
    // END is a frame as good as any: the victim hears that no more comes, and closes.
    if (error === undefined) {
      this.ended++;
      return;
    }
    assert.ok(FlowError.isFlowError(error));
    assert.deepEqual([error.code, error.reason], ['DAT_CONN_BROKEN', 'PEER_PROTOCOL']);
    const { cause } = error;
    assert.ok(cause instanceof ChannelProtocolError);
    assert.match(cause.message, / is .*; it must be /);
    this.fields.add(String(cause.field));
    this.breaches++;
  }
}

describe('channel, a hostile peer that is live', () => {
  it('ends with its own connection, and leaves nothing, by 100,000 mutated frames', async () => {
    const world = await flowWorld();
    const listener = await listen(world.server, { port: PORT, ...acceptChannel(LIMITS) });
    const peer = { address: SERVER, port: PORT, ...offerChannel(LIMITS) };
    const conns = await Promise.all([connect(world.client, peer), listener.accept()]);
    const [near, far] = conns.map((conn) => channel(conn)) as [Channel, Channel];
    const attack = new Attack(world, listener);
    const witness = async (): Promise<string> => {
      const sent = near.send(new Uint8Array(LIMITS.maxMessageBytes).fill(7));
      assert.deepEqual(new Set(await far.receive()), new Set([7]));
      await sent;
      return `${leftOf(world.client)}, ${leftOf(world.server)}`;
    };
    await attack.live();
    const left = await witness();
    for (let life = 1; attack.frames < FRAMES; life++) {
      await attack.live();
      if (life % LIVES_A_CHECK === 0) assert.equal(await witness(), left);
    }
    const { breaches, ended, kinds } = attack;
    assert.ok(breaches > 1000 && breaches > 10 * ended, `${breaches} breaches, ${ended} ends`);
    assert.ok(kinds >= 5, `${kinds} fields were broken`);
    await world.close();
  }).timeout(300_000);
});
