import assert from 'node:assert/strict';
import { LIMITS, SpinPacer } from '../../../../providers/hca/pacing/index.js';
import { compile } from '../../../../providers/hca/pacing/table.js';

const REASON = { reason: 'of this test' };

describe('decision tables', () => {
  const rows = [
    { name: 'both', when: ['A', 'B'], then: 'X', ...REASON },
    { name: 'A alone', when: ['A'], unless: ['B'], then: 'Y', ...REASON },
  ] as const;

  it('decide by the first row that fits', () => {
    const last = { name: 'else', then: 'X', ...REASON } as const;
    const facts = ['A', 'B'] as const;
    const { actions, byFacts } = compile({ question: 'which?', facts, rows: [...rows, last] });
    assert.deepEqual(actions, { X: 0, Y: 1 });
    assert.deepEqual([...byFacts], [0, 1, 0, 0]);
  });

  it('decide every combination of facts, and have no row without use', () => {
    const facts = ['A', 'B'] as const;
    assert.throws(() => compile({ question: 'which?', facts, rows }), /which\?: no row for the f/);
    const last = { name: 'else', then: 'X', ...REASON } as const;
    const late = { name: 'late', when: ['A'], then: 'Y', ...REASON } as const;
    assert.throws(
      () => compile({ question: 'which?', facts, rows: [...rows, last, late] }),
      /the row 'late' decides nothing/,
    );
  });
});

describe('a consumer that spins', () => {
  const SPIN_US = LIMITS.SPIN_US.value;

  /** Looks in vain by a microsecond until it is to rest; how many. */
  function looks(pacer: SpinPacer, fromUs: number): number {
    for (let i = 0; i <= 2 * SPIN_US; i++) if (pacer.rests(false, fromUs + i)) return i;
    return assert.fail('it never rests');
  }

  it('rests when it has looked in vain for so long, and looks as long again', () => {
    const pacer = new SpinPacer();
    assert.equal(looks(pacer, 1000), SPIN_US + 1);
    assert.equal(looks(pacer, 1000 + SPIN_US + LIMITS.REST_US.value + 1), SPIN_US + 1);
  });

  it('does not rest while something moves on one of its devices', () => {
    const pacer = new SpinPacer();
    for (let us = 0; us < 10 * SPIN_US; us++) {
      assert.equal(pacer.rests(us % (SPIN_US / 2) === 0, us), false);
    }
  });

  it('does not rest between looks that have other work between them', () => {
    const pacer = new SpinPacer();
    const step = LIMITS.IDLE_SLICE_US.value + 1;
    for (let us = 0; us < 100 * SPIN_US; us += step) assert.equal(pacer.rests(false, us), false);
  });
});
