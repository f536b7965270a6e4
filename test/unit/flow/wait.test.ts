import assert from 'node:assert/strict';
import { checkWait, FlowError, type WaitOptions, Waits } from '../../../core/flow/index.js';
import { failureOf } from '../../support/flow-scene.js';
import { VirtualWorld } from '../../support/virtual-world.js';

const ended = (operation: string): FlowError =>
  new FlowError('DAT_CONN_CLOSED', { operation, message: 'over' });

function waits(explanation = ''): { world: VirtualWorld; list: Waits<number> } {
  const world = new VirtualWorld();
  return { world, list: new Waits<number>({ clock: world, timers: world }, () => explanation) };
}

describe('flow: waits', () => {
  it('are served in the order in which they came', async () => {
    const { list } = waits();
    const [one, other] = [list.add('a', {}), list.add('b', {})];
    assert.ok(list.serve(1) && list.serve(2));
    assert.deepEqual(await Promise.all([one, other]), [1, 2]);
    assert.equal(list.serve(3), false);
    assert.ok(list.isEmpty);
  });

  it('leave by their timeout, and take nothing along', async () => {
    const { world, list } = waits('nothing has come');
    const late = list.add('take', { timeoutMs: 5 });
    const next = list.add('take', {});
    const error = failureOf(late);
    await world.run();
    const { code, message, value } = await error;
    assert.equal(code, 'DAT_TIMEOUT_EXPIRED');
    assert.equal(message, 'take: not done within 5 ms: nothing has come [DAT_TIMEOUT_EXPIRED]');
    assert.equal(value, 5);
    assert.ok(list.serve(7));
    assert.equal(await next, 7);
    assert.equal(world.activeTimers, 0);
  });

  it('leave by their signal, from the middle too', async () => {
    const { list } = waits();
    const abort = new AbortController();
    const [first, middle, last] = [
      list.add('a', {}),
      list.add('b', { signal: abort.signal, timeoutMs: 1000 }),
      list.add('c', {}),
    ];
    abort.abort(new Error('enough'));
    const error = await failureOf(middle);
    assert.equal(error.code, 'DAT_INTERRUPTED_CALL');
    assert.match(String(error.cause), /enough/);
    list.serve(1);
    list.serve(2);
    assert.deepEqual(await Promise.all([first, last]), [1, 2]);
  });

  it('end once: what comes later finds neither timer nor listener', async () => {
    const { world, list } = waits();
    const abort = new AbortController();
    const served = list.add('a', { signal: abort.signal, timeoutMs: 5 });
    list.serve(1);
    assert.equal(world.activeTimers, 0);
    const next = list.add('b', {});
    abort.abort();
    await world.run();
    assert.ok(list.serve(2));
    assert.deepEqual([await served, await next], [1, 2]);
  });

  it('end with their object, each with an error of its own', async () => {
    const { list } = waits();
    const [one, other] = [failureOf(list.add('a', {})), failureOf(list.add('b', {}))];
    list.end(ended);
    assert.deepEqual([(await one).operation, (await other).operation], ['a', 'b']);
    assert.ok(list.isEmpty);
  });

  it('are refused for options that cannot be, and for a signal that has fired', () => {
    const refused = (options: unknown, message: RegExp): void =>
      assert.throws(() => checkWait('take', options as WaitOptions), {
        code: 'DAT_INVALID_PARAMETER',
        message,
      });
    refused({ timeoutMs: -1 }, /timeoutMs is -1; it must be a number from 0 on/);
    refused({ timeoutMs: NaN }, /timeoutMs is NaN/);
    refused({ signal: {} }, /signal is an object; it must be an AbortSignal/);
    refused({ timeout: 5 }, /did you mean "timeoutMs"/);
    refused(null, /options is null/);
    assert.throws(() => checkWait('take', { signal: AbortSignal.abort('no') }), {
      code: 'DAT_INTERRUPTED_CALL',
      cause: 'no',
    });
  });
});
