// What the connections of one adapter may have on its way, together and each.
import assert from 'node:assert/strict';
import { Adapter } from '../../../../../samples/ulp/rsocket/transport/adapter.js';
import { Share } from '../../../../../samples/ulp/rsocket/transport/share.js';
import { StagingRing } from '../../../../../samples/ulp/rsocket/transport/staging-ring.js';
import { rsocket, type RsocketStream } from '../../../../../samples/ulp/rsocket/index.js';
import { planted } from './planted.js';
import { listening, PORT, Seen, SERVER, worldOf } from './stream-scene.js';

const TOGETHER_BYTES = 3 * 2 ** 20;
const LEAST_BYTES = 16 * 1024;

/** Bytes that all rings have taken: the most of them at a time since it began. */
class Watch {
  most = 0;
  private taken = 0;
  private readonly undo = [
    planted(StagingRing.prototype, 'take', (whole) => this.adding(whole)),
    planted(StagingRing.prototype, 'giveBack', (whole) => this.adding(whole)),
  ];

  end(): void {
    for (const undo of this.undo) undo();
  }

  private adding<A extends unknown[], R>(
    whole: (this: StagingRing, ...args: A) => R,
  ): (this: StagingRing, ...args: A) => R {
    const add = (bytes: number): void => {
      this.taken += bytes;
      this.most = Math.max(this.most, this.taken);
    };
    return function (...args) {
      const before = this['usedBytes'];
      const result = whole.apply(this, args);
      add(this['usedBytes'] - before);
      return result;
    };
  }
}

describe('rsocket: the share of a connection', () => {
  for (const [busy, bytes] of [
    [0, TOGETHER_BYTES],
    [1, TOGETHER_BYTES],
    [3, TOGETHER_BYTES / 3],
    [192, LEAST_BYTES],
    [1000, LEAST_BYTES],
  ] as const) {
    it(`is ${bytes} bytes of ${busy} that are busy`, () => {
      const share = new Share();
      for (let i = 0; i < busy; i++) share.enter();
      assert.equal(share.bytes, bytes);
      for (let i = 0; i < busy; i++) share.leave();
      assert.equal(share.bytes, TOGETHER_BYTES);
    });
  }

  it('keeps what many have on its way within bounds, and comes back from each', async () => {
    const world = await worldOf();
    const adapter = Adapter.join(world.client);
    const options = { after: world.after, receiveBytes: 2 ** 19, sendBytes: 2 ** 19 };
    const far: Seen[] = [];
    const listener = await listening(rsocket(world.server, options), (stream: RsocketStream) =>
      far.push(new Seen(stream)),
    );
    const protocol = rsocket(world.client, options);
    const near: Seen[] = [];
    for (let i = 0; i < 20; i++) {
      near.push(new Seen(await protocol.connect({ address: SERVER, port: PORT })));
    }
    const watch = new Watch();
    try {
      const bytes = new Uint8Array(2 ** 19);
      const writes = near.map((seen) => seen.write(bytes));
      // One that breaks in the middle does not keep its share.
      near.at(-1)?.stream.abort();
      await assert.rejects(writes.pop() as Promise<void>, { code: 'EPIPE' });
      await Promise.all(writes);
      // Windows of their own would be 10 MiB. They begin one after the other, each with a smaller
      // share than the last: their sum is the most that there can be.
      const shares = near.map((_, at) => Math.min(2 ** 19, TOGETHER_BYTES / (at + 1)));
      const bound = shares.reduce((sum, share) => sum + share, 0);
      assert.ok(bound < 7 * 2 ** 20);
      assert.ok(watch.most > TOGETHER_BYTES && watch.most <= bound, `${watch.most} of ${bound}`);
    } finally {
      watch.end();
    }
    for (const { stream } of near) stream.close();
    await Promise.all(near.map((seen) => seen.end()));
    assert.equal(adapter.share.bytes, TOGETHER_BYTES, 'nothing is on its way');
    adapter.leave();
    await listener.close();
    await world.close();
  });
});
