/** Shared receive queues: limit, resize, and slots that are refused. */
import assert from 'node:assert/strict';
import { AsyncEventType, WcStatus } from '../../../core/spi/index.js';
import { drain, postSend, postShared, submitSlot } from '../../support/hca-pair.js';
import { SLOT_BYTES, buffer, send, shared, slots } from '../../support/shared-receives.js';

const { SUCCESS } = WcStatus;

describe('Shared receive queue', () => {
  describe('limit', () => {
    const reached = [AsyncEventType.SRQ_LIMIT_REACHED];

    it('tells once that fewer entries are left, and again only when set again', () => {
      const { pair, srq, senders } = shared();
      for (let slot = 0; slot < 6; slot++) postShared(pair.b, srq, slot, buffer(slot));
      srq.setLimit(4);
      const take = (): void => {
        postSend(pair.a, senders[0]!, send());
        pair.run(100);
      };
      take();
      take();
      assert.deepEqual(pair.b.srqEvents, [], 'four are left: not fewer');
      take();
      assert.deepEqual(pair.b.srqEvents, reached);
      for (let i = 0; i < 3; i++) take();
      assert.deepEqual(pair.b.srqEvents, reached);
      for (let slot = 0; slot < 6; slot++) postShared(pair.b, srq, slot, buffer(slot));
      srq.setLimit(6);
      take();
      assert.deepEqual(pair.b.srqEvents, [...reached, ...reached]);
    });

    it('tells at the end of the pump when fewer are left already, never inside the call', () => {
      const { pair, srq } = shared();
      srq.setLimit(1);
      assert.deepEqual(pair.b.srqEvents, []);
      pair.run(10);
      assert.deepEqual(pair.b.srqEvents, reached);
    });

    it('of 0 disarms; more than the queue holds is refused', () => {
      const { pair, srq, senders } = shared(1, { maxWr: 5 });
      for (let slot = 0; slot < 5; slot++) postShared(pair.b, srq, slot, buffer(slot));
      srq.setLimit(5);
      srq.setLimit(0);
      postSend(pair.a, senders[0]!, send());
      pair.run(100);
      assert.deepEqual(pair.b.srqEvents, []);
      for (const wrong of [6, -1, 1.5, NaN]) {
        assert.throws(() => srq.setLimit(wrong), { code: 'EINVAL', message: /limit .*0 to 5/ });
      }
    });
  });

  describe('resize', () => {
    it('under traffic loses nothing: in use, waiting, submitted, not yet submitted', () => {
      const { pair, srq, senders } = shared(2, { maxWr: 4 });
      const { ring } = srq;
      // Indices that have gone round.
      for (let i = 0; i < 6; i++) {
        postShared(pair.b, srq, i % 4, buffer(i % 4));
        postSend(pair.a, senders[0]!, send());
        pair.run(100);
      }
      drain(pair.b.receiveCq);
      pair.a.bytes.fill(0xab, 0, SLOT_BYTES);
      for (const slot of [2, 0]) postShared(pair.b, srq, slot, buffer(slot));
      // Two of four packets of a message are in slot 2.
      pair.a.port.sendCredit = 2;
      postSend(pair.a, senders[0]!, send(SLOT_BYTES));
      pair.settle();
      submitSlot(pair.b, srq, 3, buffer(3));
      srq.resize(20);
      assert.notEqual(srq.ring, ring);
      assert.ok(srq.ring.slots.entries >= 20 && srq.ring.submissions.entries >= 20);
      srq.ringDoorbell();
      for (const slot of [17, 19, 1]) postShared(pair.b, srq, slot, buffer(slot));
      pair.a.port.sendCredit = Infinity;
      for (let i = 0; i < 5; i++) postSend(pair.a, senders[i % 2]!, send(1000 + i));
      pair.run(10_000);
      const done = drain(pair.b.receiveCq);
      assert.ok(done.every((c) => c.status === SUCCESS && c.cookie === c.wqeIndex));
      assert.equal(done[0]?.wqeIndex, 2);
      assert.deepEqual(slots(done), [2, 0, 3, 17, 19, 1]);
      assert.equal(pair.b.bytes.subarray(2 * SLOT_BYTES, 3 * SLOT_BYTES).indexOf(0), -1);
    });

    it('to fewer keeps every slot, and is bounded by what is outstanding', () => {
      const { pair, srq, senders } = shared(1, { maxWr: 8 });
      const { ring } = srq;
      for (const slot of [7, 3, 5]) postShared(pair.b, srq, slot, buffer(slot));
      assert.throws(() => srq.resize(2), { code: 'EINVAL', message: /3 entries are outstanding/ });
      srq.resize(3);
      assert.equal(srq.ring, ring, 'slots in use have any number');
      assert.throws(() => postShared(pair.b, srq, 0, buffer(0)), { code: 'ENOMEM' });
      srq.setLimit(3);
      postSend(pair.a, senders[0]!, send());
      pair.run(100);
      assert.deepEqual(pair.b.srqEvents, [AsyncEventType.SRQ_LIMIT_REACHED]);
      srq.ringDoorbell();
      for (let i = 0; i < 2; i++) postSend(pair.a, senders[0]!, send());
      pair.run(100);
      assert.deepEqual(slots(drain(pair.b.receiveCq)), [7, 3, 5]);
      for (const wrong of [0, -1, 2.5, NaN, 1 << 30]) {
        assert.throws(() => srq.resize(wrong), { code: 'EINVAL', message: /maxWr/ });
      }
    });
  });

  describe('refused slots', () => {
    const cases: [string, number, number, string][] = [
      ['a slot that the ring does not have', 8, 1, 'EINVAL'],
      ['a slot that is submitted already', 1, 1, 'EINVAL'],
      ['more segments than were asked for', 3, 3, 'EINVAL'],
    ];
    for (const [what, slot, segments, code] of cases) {
      it(`${what}: it stays in the submissions with what is behind it`, () => {
        const { pair, srq, senders } = shared();
        const { submissions } = srq.ring;
        submitSlot(pair.b, srq, 1, buffer(1));
        submitSlot(pair.b, srq, slot, new Array(segments).fill(buffer(slot)[0]) as []);
        submitSlot(pair.b, srq, 4, buffer(4));
        for (let i = 0; i < 2; i++) {
          assert.throws(() => srq.ringDoorbell(), { name: 'SpiError', code });
          assert.deepEqual([submissions.consumer, submissions.length], [1, 2]);
        }
        // Another slot in its place, and all goes on.
        submissions.words[submissions.wordOf(1)] = 6;
        submitSlot(pair.b, srq, 6, buffer(6));
        submissions.producer -= 1;
        srq.ringDoorbell();
        for (let i = 0; i < 3; i++) postSend(pair.a, senders[0]!, send());
        pair.run(1000);
        assert.deepEqual(slots(drain(pair.b.receiveCq)), [1, 6, 4]);
      });
    }

    it('more than were asked for, until one of them has completed', () => {
      const { pair, srq, senders } = shared(1, { maxWr: 3 });
      for (const slot of [0, 1, 2]) postShared(pair.b, srq, slot, buffer(slot));
      assert.throws(() => postShared(pair.b, srq, 3, buffer(3)), { code: 'ENOMEM' });
      postSend(pair.a, senders[0]!, send());
      pair.run(100);
      srq.ringDoorbell();
      assert.equal(srq.ring.submissions.length, 0);
    });
  });
});
