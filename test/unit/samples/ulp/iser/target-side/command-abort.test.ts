// What ends a command early.
import assert from 'node:assert/strict';

import { CommandAbort } from '../../../../../../samples/ulp/iser/session/target-side/command-abort.js';

describe('iSER target: abort of a command', () => {
  it('tells its listeners once, and keeps the first reason', () => {
    const abort = new CommandAbort();
    const heard: string[] = [];
    const first = (): void => void heard.push('first');
    abort.addEventListener('abort', first);
    abort.addEventListener('abort', () => heard.push('second'));
    abort.removeEventListener('abort', first);
    abort.signal.throwIfAborted();
    abort.abort(new Error('enough'));
    abort.abort(new Error('again'));
    assert.deepEqual(heard, ['second']);
    assert.equal(abort.signal.aborted, true);
    assert.throws(() => abort.throwIfAborted(), { message: 'enough' });
  });

  it('has a reason of its own where none is given', () => {
    const abort = new CommandAbort();
    abort.abort();
    assert.match(abort.reason?.message ?? '', /aborted/);
  });
});
