import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { silentLogger, Timer } from '../../../core/spi/index.js';
import { VerbsDriver } from '../../../providers/verbs/node.js';
import { monotonicClock } from '../../../providers/host/index.js';

describe('verbs: the pump', () => {
  const errors: unknown[] = [];
  const logger = {
    ...silentLogger,
    error: (_: string, fields?: object) => void errors.push(fields),
  };
  let driver: VerbsDriver;
  beforeEach(() => {
    errors.length = 0;
    driver = new VerbsDriver(monotonicClock, logger);
  });
  afterEach(() => driver.close());

  it('never runs a task inside the call that defers it', async () => {
    const order: string[] = [];
    driver.defer(() => order.push('task'));
    order.push('caller');
    await turn();
    assert.deepEqual(order, ['caller', 'task']);
  });

  it('runs tasks one at a time, in the order in which they came, those of tasks last', async () => {
    const order: number[] = [];
    driver.defer(() => {
      driver.defer(() => order.push(3));
      order.push(1);
    });
    driver.defer(() => order.push(2));
    await turn();
    assert.deepEqual(order, [1, 2, 3]);
  });

  it('logs what a task throws, and goes on', async () => {
    let ran = false;
    driver.defer(() => {
      throw new Error('of a consumer');
    });
    driver.defer(() => (ran = true));
    await turn();
    assert.ok(ran);
    assert.match(String((errors[0] as { error: Error }).error), /of a consumer/);
  });

  it('lets the event loop have its turn among tasks without end', async () => {
    let count = 0;
    let isOver = false;
    const again = (): void => {
      count++;
      if (!isOver) driver.defer(again);
    };
    driver.defer(again);
    driver.setProcessHold(true);
    await turn();
    await turn();
    assert.ok(count > 0);
    isOver = true;
    await turn();
    await turn();
    const settled = count;
    await turn();
    assert.equal(count, settled);
    driver.setProcessHold(false);
  });

  it('expires timers, also those started in a task, and stops with the device', async () => {
    driver.setProcessHold(true);
    const expired = await new Promise<string[]>((resolve) => {
      const names: string[] = [];
      const second = new Timer(() => resolve([...names, 'second']));
      const first = new Timer((nowUs) => {
        names.push('first');
        driver.timers.start(second, nowUs + 1500);
      });
      const stopped = new Timer(() => names.push('stopped'));
      driver.timers.start(stopped, monotonicClock.now() + 500);
      driver.timers.start(first, monotonicClock.now() + 1500);
      driver.timers.stop(stopped);
    });
    assert.deepEqual(expired, ['first', 'second']);
    driver.close();
    const late = new Timer(() => assert.fail('after close'));
    driver.timers.start(late, monotonicClock.now());
    await turn();
  });
});
