/** Invariants: looked at where DAPL_ASSERT=1 was set at the start, as here; elsewhere not. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { assert as invariant, InvariantError } from '../../../core/spi/checks/index.js';

const PROGRAM = `
  import { assert } from '${import.meta.resolve('../../../core/spi/checks/index.js')}';
  try {
    assert(1 > 2, 'one is above two', 7);
    console.log('not looked at');
  } catch (error) {
    console.log(error.name + ': ' + error.message);
  }
`;

function outputWith(setting: string | undefined): string {
  const env = { ...process.env };
  delete env['DAPL_ASSERT'];
  const args = ['--input-type=module', '--eval', PROGRAM];
  const set = setting === undefined ? env : { ...env, DAPL_ASSERT: setting };
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env: set });
  assert.equal(stderr, '');
  return stdout.trim();
}

describe('an invariant', () => {
  it('that does not hold is an error of its own kind, in tests', () => {
    invariant(true, 'fine');
    assert.throws(() => invariant(false, 'it is so'), /^InvariantError: .* that it is so$/);
    assert.throws(
      () => invariant(false, 'a piece is freed once', 5),
      (error) =>
        error instanceof InvariantError &&
        error.message === 'it does not hold that a piece is freed once, for 5',
    );
  });

  it('is looked at in a process that starts with DAPL_ASSERT=1', () => {
    assert.equal(outputWith('1'), 'InvariantError: it does not hold that one is above two, for 7');
  });

  it('is not looked at in any other process', () => {
    assert.equal(outputWith(undefined), 'not looked at');
    assert.equal(outputWith('0'), 'not looked at');
  });
});
