import assert from 'node:assert/strict';
import { tearDown, type TeardownStep } from '../../../core/di/index.js';
import { DatError } from '../../../core/errors/index.js';
import { FakeWorld } from '../../support/fake-world.js';

function limitsOf(world: FakeWorld): Parameters<typeof tearDown>[1] {
  return { operation: 'test', clock: world, timers: world, deadlineMs: 100 };
}

describe('tearDown', () => {
  it('runs steps in order, each after the one before has ended', async () => {
    const world = new FakeWorld();
    const log: string[] = [];
    const step = (name: string): TeardownStep => ({
      name,
      run: async () => {
        log.push(`${name} begins`);
        await Promise.resolve();
        log.push(`${name} ends`);
      },
    });
    await tearDown([step('a'), step('b')], limitsOf(world));
    assert.deepEqual(log, ['a begins', 'a ends', 'b begins', 'b ends']);
    assert.equal(world.timersRunning, 0);
  });

  it('collects failures and goes on', async () => {
    const world = new FakeWorld();
    let last = false;
    const failing = (message: string) => (): void => {
      throw new Error(message);
    };
    const steps = [
      { name: 'a', run: failing('no a') },
      { name: 'b', run: () => Promise.reject(new Error('no b')) },
      { name: 'c', run: () => void (last = true) },
    ];
    await assert.rejects(tearDown(steps, limitsOf(world)), (error) => {
      assert.ok(DatError.isDatError(error));
      assert.equal(error.code, 'DAT_INTERNAL_ERROR');
      assert.ok(error.cause instanceof AggregateError);
      assert.deepEqual(
        error.cause.errors.map((item: Error) => item.message),
        ['a: no a', 'b: no b'],
      );
      return true;
    });
    assert.ok(last);
  });

  it('leaves a step behind at the deadline, and still starts the rest', async () => {
    const world = new FakeWorld();
    const log: string[] = [];
    const steps = [
      { name: 'stuck', run: () => new Promise<void>(() => undefined) },
      { name: 'also stuck', run: () => new Promise<void>(() => void log.push('started')) },
      { name: 'last', run: () => void log.push('last') },
    ];
    const done = tearDown(steps, limitsOf(world));
    const rejected = assert.rejects(done, /stuck: not done within 100 ms.*also stuck/);
    await world.settle();
    assert.deepEqual(log, []);
    world.advance(100_000);
    await rejected;
    assert.deepEqual(log, ['started', 'last']);
  });
});
