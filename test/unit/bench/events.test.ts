import assert from 'node:assert/strict';
import { measureAllocation, WAYS as ALLOCATING_WAYS } from '../../../bench/alloc.js';
import { eventsTable, measureEvents } from '../../../bench/events/main.js';
import { WAYS } from '../../../bench/events/ways.js';
import { networkOf } from '../../support/loopback.js';

describe('Benchmark of event delivery', function () {
  this.timeout(120_000);

  it('delivers every completion in every way, and counts time and bytes', async () => {
    const costs = await measureEvents({ messages: 6400, rounds: 2 });
    assert.equal(costs.length, 2 * WAYS.length);
    for (const { way, nanoseconds, bytes } of costs) {
      assert.equal(nanoseconds.length, 2, way);
      assert.ok(nanoseconds.every((ns) => ns >= 0 && Number.isFinite(ns)));
      assert.ok(Number.isFinite(bytes), way);
    }
    const lines = eventsTable(costs, 'text').split('\n');
    assert.equal(lines.length, 1 + WAYS.length);
    assert.match(lines[0]!, /bursts of 1 .*bursts of 32/);
  });

  it('finds that a reused batch allocates nothing, and that dequeue() makes an event', async () => {
    const ways = WAYS.filter(({ name }) => /^dequeue/.test(name));
    const costs = await measureEvents({ messages: 320_000, rounds: 1, ways });
    const [batchOne, batchMany, eventOne, eventMany] = costs.map(({ bytes }) => bytes);
    for (const bytes of [batchOne!, batchMany!]) assert.ok(bytes < 4, `${bytes} bytes`);
    for (const bytes of [eventOne!, eventMany!]) {
      assert.ok(bytes > 40 && bytes < 400, `${bytes} bytes`);
    }
  });

  it('counts what messages allocate at both ends of a connection', async () => {
    const ways = Object.fromEntries(
      Object.entries(ALLOCATING_WAYS).filter(([name, { contender }]) => {
        return contender === 'softroce' || name === 'request and answer, channel';
      }),
    );
    const run = { messages: 1000, ways, trialSeconds: 0.05, network: networkOf(76) };
    const results = await measureAllocation(run);
    assert.equal(results.length, 5);
    for (const { way, messages, bytesPerMessage } of results) {
      assert.ok(messages > 0, way);
      assert.ok(Number.isFinite(bytesPerMessage.sender) && bytesPerMessage.sender > 0, way);
      assert.ok(Number.isFinite(bytesPerMessage.receiver) && bytesPerMessage.receiver > 0, way);
    }
  });
});
