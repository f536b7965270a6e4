/** Every order of the accesses to shared memory, with a process that is killed between any two. */
import assert from 'node:assert/strict';
import { type RingState, searchRing } from './ring-model.js';

const PACKETS = 4;
const all = Array.from({ length: PACKETS }, (_, i) => i);

describe('the ring protocol, in every order of its steps', () => {
  it('brings every packet once and in order, and nobody sleeps while there is something', () => {
    const ends: RingState[] = [];
    const scenario = { packets: PACKETS, withdraws: false, kills: 'nobody' } as const;
    const states = searchRing(scenario, (end) => ends.push(end));
    assert.ok(states > 1000, `${String(states)} states`);
    assert.ok(ends.length > 0);
    for (const { p, c, got } of ends) {
      assert.deepEqual([p, c], ['done', 'sleep']);
      assert.deepEqual(got, all);
    }
  });

  it('lets no packet be read whose memory has been taken back', () => {
    let lost = 0;
    const scenario = { packets: PACKETS, withdraws: true, kills: 'nobody' } as const;
    searchRing(scenario, (end) => {
      assert.deepEqual([end.p, end.c], ['done', 'sleep']);
      assert.equal(end.got.length + end.lost, PACKETS);
      lost = Math.max(lost, end.lost);
    });
    assert.ok(lost > 0, 'nothing was ever taken back');
  });

  it('finds what is wrong when a step is left out', () => {
    const asleep = (end: RingState): void => assert.equal(end.got.length + end.lost, PACKETS);
    const plain = { packets: PACKETS, withdraws: true, kills: 'nobody' } as const;
    assert.throws(
      () => searchRing({ ...plain, flaw: 'looks once' }, asleep),
      assert.AssertionError,
    );
    assert.throws(() => searchRing({ ...plain, flaw: 'claims nothing' }, asleep), /bytes of later/);
    assert.throws(() => searchRing({ ...plain, flaw: 'writes early' }, asleep), Error);
  });

  it('leaves the consumer with all that was shown when the producer is killed', () => {
    searchRing({ packets: PACKETS, withdraws: true, kills: 'producer' }, (end) => {
      // Killed before it could wake the consumer: what does is the end of the socket.
      const asleep = end.c === 'sleep';
      assert.ok(asleep && end.got.length + end.lost <= end.produced);
      if (end.got.length + end.lost < end.produced) assert.equal(end.p, 'dead');
    });
  });

  it('leaves the producer asleep, or waiting for memory, when the consumer is killed', () => {
    const ends = new Set<string>();
    searchRing({ packets: PACKETS, withdraws: true, kills: 'consumer' }, (end) => {
      assert.equal(end.c, 'dead');
      ends.add(end.p);
    });
    // Waiting for memory never rests: the time that it may take ends it (Channels::withdraw).
    assert.deepEqual([...ends].sort(), ['done', 'sleep']);
  });
});
