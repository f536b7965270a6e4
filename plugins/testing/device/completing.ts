/** Completion queues: arming, capacity and overrun. */
import assert from 'node:assert/strict';
import { AsyncEventType, QpState } from 'dapl/spi';
import type { End } from './end.js';
import { deviceGroup, type World } from './world.js';

const piece = { offset: 0, length: 8 };

/** One message from a to b. */
function message(a: End, b: End, solicited = false): void {
  b.receive({ offset: 0, length: 64 });
  a.send({ pieces: [piece], solicited });
}

/** Waits until the message has arrived, without reading the completions of b. */
async function arrived(world: World, a: End): Promise<void> {
  await world.completions(a, 1);
  await world.quiet();
}

export const completing = deviceGroup('Completing', (claim) => {
  claim('a queue that is not armed does not notify', async (world) => {
    const { a, b } = world.connected();
    message(a, b);
    await arrived(world, a);
    assert.equal(b.notified, 0);
    assert.equal(b.take().length, 1);
  });

  claim('one arm is one notification', async (world) => {
    const { a, b } = world.connected();
    b.arm();
    message(a, b);
    await arrived(world, a);
    assert.equal(b.notified, 1);
    message(a, b);
    await arrived(world, a);
    assert.equal(b.notified, 1, 'it was armed once');
    b.take();
    b.arm();
    message(a, b);
    await arrived(world, a);
    assert.equal(b.notified, 2);
    assert.equal(b.take().length, 1);
  });

  claim('drain, arm, look once more: nothing is slept through', async (world) => {
    const { a, b } = world.connected();
    let got = 0;
    for (let round = 0; round < 10; round++) {
      const before = b.notified;
      b.arm();
      got += b.take().length;
      message(a, b);
      await world.until(() => b.notified > before, 'a notification');
    }
    await world.completions(a, 10);
    await world.quiet();
    assert.equal(got + b.take().length, 10);
  });

  claim('arming with completions waiting calls nothing back', async (world) => {
    const { a, b } = world.connected();
    message(a, b);
    await arrived(world, a);
    b.arm();
    assert.equal(b.take().length, 1);
  });

  claim(
    'a queue armed for solicited completions sleeps through others',
    async (world) => {
      const { a, b } = world.connected();
      b.arm(true);
      message(a, b);
      await arrived(world, a);
      assert.equal(b.notified, 0);
      message(a, b, true);
      await arrived(world, a);
      assert.equal(b.notified, 1);
      b.take();
    },
    ['solicited'],
  );

  claim(
    'arming again for less does not narrow',
    async (world) => {
      const { a, b } = world.connected();
      b.arm();
      b.arm(true);
      message(a, b);
      await arrived(world, a);
      assert.equal(b.notified, 1);
      b.take();
    },
    ['solicited'],
  );

  claim('a failed completion is worth a notification, solicited or not', async (world) => {
    const { a } = world.connected();
    a.arm(true);
    a.send({ pieces: [{ ...piece, lkey: a.region.lkey ^ 0x5a5a }] });
    await world.until(() => a.notified === 1, 'a notification');
    a.take();
  });

  claim('polling notifies nothing, and tells what is there', async (world) => {
    const { a, b } = world.connected();
    message(a, b);
    message(a, b);
    await world.until(() => b.cq.poll() === 2, 'two completions');
    assert.equal(b.cq.poll(), 2, 'what has not been read is told of again');
    assert.equal(b.take().length, 2);
    assert.equal(b.cq.poll(), 0);
    await world.completions(a, 2);
  });

  claim('unread completions move to a larger ring', async (world) => {
    const { a, b } = world.connected({ minEntries: 16 });
    for (let i = 0; i < 5; i++) message(a, b);
    await world.completions(a, 5);
    await world.until(() => b.cq.poll() === 5, 'five completions');
    b.cq.resize(200);
    assert.ok(b.cq.ring.entries >= 200);
    message(a, b);
    await arrived(world, a);
    assert.equal(b.take().length, 6);
  });

  claim('an overrun is told, and breaks the queue pairs on the queue', async (world) => {
    const { a, b } = world.connected({ minEntries: 4, maxWr: 64 });
    const room = b.cq.ring.entries * 2 + 8;
    const sends = Math.min(60, Math.max(room, 40));
    b.receive(...Array.from({ length: sends }, () => ({ offset: 0, length: 64 })));
    for (let i = 0; i < sends; i++) {
      a.send({ pieces: [piece] });
      await world.quiet();
      a.take();
    }
    if (b.cq.ring.entries + 4 >= sends) return;
    await world.until(() => b.cqEvents.length > 0, 'CQ_ERR');
    assert.deepEqual(b.cqEvents, [AsyncEventType.CQ_ERR]);
    assert.equal(b.qp.state, QpState.ERR);
    b.take();
    a.take();
  });
});
