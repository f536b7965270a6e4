/** What event dispatchers hold: endpoints may have private ones. */
import assert from 'node:assert/strict';
import { Evd, EvdFlags } from '../../../core/evd/index.js';
import { heapBytes } from '../../support/heap.js';
import { FakeHost } from './fake-host.js';

const COUNT = 10_000;
/** Of the heap, beside the queue of software events, which has one entry. */
const MOST_BYTES = 2200;

describe('an event dispatcher', () => {
  it(`takes at most ${MOST_BYTES} bytes of the heap, without a completion queue`, () => {
    const host = new FakeHost();
    const streams = EvdFlags.CONNECTION;
    const bytes = heapBytes(COUNT, () => new Evd(host, { id: 1, qlen: 1, streams }));
    assert.ok(bytes > 0 && bytes <= MOST_BYTES, `${bytes} bytes`);
  });
});
