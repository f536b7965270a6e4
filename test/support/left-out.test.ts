import assert from 'node:assert/strict';
import { leaveOut } from './left-out.js';

class Skipped extends Error {}

/** What became of a test that is left out, and what was said. */
function outcome(ci: string | undefined): { error: unknown; lines: readonly unknown[] } {
  const { warn } = console;
  const before = process.env['CI'];
  const lines: unknown[] = [];
  console.warn = (line: unknown): void => void lines.push(line);
  if (ci === undefined) delete process.env['CI'];
  else process.env['CI'] = ci;
  try {
    const skip = (): never => {
      throw new Skipped();
    };
    return leaveOut({ skip }, 'no CAP_NET_RAW', 'as root: npm test');
  } catch (error) {
    return { error, lines };
  } finally {
    console.warn = warn;
    if (before === undefined) delete process.env['CI'];
    else process.env['CI'] = before;
  }
}

describe('a test that cannot run here', () => {
  it('is left out with a line that says why and what to do', () => {
    const { error, lines } = outcome(undefined);
    assert.ok(error instanceof Skipped);
    assert.deepEqual(lines, ['    SKIPPED: no CAP_NET_RAW: as root: npm test']);
  });

  it('fails in CI', () => {
    const { error } = outcome('true');
    assert.ok(error instanceof Error && !(error instanceof Skipped));
    assert.match(error.message, /no CAP_NET_RAW: as root: npm test/);
  });
});
