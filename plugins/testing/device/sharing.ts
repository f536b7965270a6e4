/** Shared receive queues. */
import assert from 'node:assert/strict';
import { AsyncEventType, QpState } from 'dapl/spi';
import { deviceGroup } from './world.js';

const piece = { offset: 0, length: 8 };

export const sharing = deviceGroup('Sharing receives', (claim) => {
  const needs = ['shared-receive-queue'] as const;

  claim(
    'messages take slots, whose numbers their completions name',
    async (world) => {
      const { a, b } = world.connected({ sharedWr: 8 });
      b.receiveShared({ slot: 3, offset: 0, length: 64 }, { slot: 5, offset: 64, length: 64 });
      a.send({ pieces: [piece] }, { pieces: [piece] });
      const received = await world.completions(b, 2);
      assert.deepEqual(
        received.map(({ index, cookie }) => [index, cookie]),
        [
          [3, 3],
          [5, 5],
        ],
      );
      await world.completions(a, 2);
    },
    needs,
  );

  claim(
    'a queue pair with a shared receive queue has no receive ring',
    (world) => {
      const { b } = world.ends({ sharedWr: 8 });
      assert.equal(b.qp.receiveRing, undefined);
      assert.throws(() => b.srq?.destroy(), { code: 'EBUSY' });
      b.qp.destroy();
      b.srq?.destroy();
    },
    needs,
  );

  claim(
    'has a number that no other one has, by which completions name it',
    async (world) => {
      const { a, b } = world.connected({ sharedWr: 8 });
      const init = { pd: b.pd, maxWr: 4, maxSge: 1, onEvent: () => undefined };
      const others = [1, 2, 3].map(() => b.device.createSharedReceiveQueue!(init));
      const numbers = [b.srq!, ...others].map(({ srqn }) => srqn);
      assert.equal(new Set(numbers).size, 4);
      assert.ok(!numbers.includes(0), '0 is none');
      b.receiveShared({ slot: 2, offset: 0, length: 64 });
      a.send({ pieces: [piece] });
      assert.equal((await world.completions(b, 1))[0]?.srqn, b.srq?.srqn);
      assert.equal((await world.completions(a, 1))[0]?.srqn, 0);
    },
    needs,
  );

  claim(
    'a slot that there is not is refused, and another may stand in its place',
    async (world) => {
      const { a, b } = world.connected({ sharedWr: 8 });
      const { slots, submissions } = b.srq!.ring;
      b.receiveShared({ slot: 1, offset: 0, length: 64 });
      const bad = slots.entries + 3;
      assert.throws(() => b.receiveShared({ slot: bad, offset: 0, length: 64 }), {
        code: 'EINVAL',
      });
      assert.equal(submissions.consumer, 1, 'what was refused stays');
      submissions.words[submissions.wordOf(1)] = bad & slots.mask;
      b.srq!.ringDoorbell();
      assert.equal(submissions.consumer, 2);
      a.send({ pieces: [piece] }, { pieces: [piece] });
      const received = await world.completions(b, 2);
      assert.deepEqual(
        received.map(({ index }) => index),
        [1, bad & slots.mask],
      );
    },
    needs,
  );

  claim(
    'a message that finds it empty waits for a receive',
    async (world) => {
      const { a, b } = world.connected({ sharedWr: 8 });
      a.send({ pieces: [piece] });
      await world.quiet();
      assert.deepEqual([...a.take(), ...b.take()], []);
      b.receiveShared({ slot: 0, offset: 0, length: 64 });
      assert.deepEqual(await world.statuses(b, 1), ['SUCCESS']);
      assert.deepEqual(await world.statuses(a, 1), ['SUCCESS']);
    },
    needs,
  );

  claim(
    'its limit is told once for each arming',
    async (world) => {
      const { a, b } = world.connected({ sharedWr: 8 });
      b.receiveShared(...[0, 1, 2, 3].map((slot) => ({ slot, offset: 0, length: 64 })));
      b.srq?.setLimit(3);
      a.send({ pieces: [piece] }, { pieces: [piece] }, { pieces: [piece] });
      await world.completions(b, 3);
      await world.until(() => b.events.length > 0, 'SRQ_LIMIT_REACHED');
      await world.quiet();
      const told = b.events.filter((event) => event === AsyncEventType.SRQ_LIMIT_REACHED);
      assert.equal(told.length, 1);
      await world.completions(a, 3);
    },
    needs,
  );

  claim(
    'what waits stays when a queue pair fails, and its last completion is told',
    async (world) => {
      const { b } = world.connected({ sharedWr: 8 });
      b.receiveShared({ slot: 1, offset: 0, length: 64 });
      b.qp.modify({ state: QpState.ERR });
      const last = AsyncEventType.QP_LAST_WQE_REACHED;
      await world.until(() => b.events.includes(last), 'QP_LAST_WQE_REACHED');
      assert.deepEqual(b.take(), []);
    },
    needs,
  );
});
