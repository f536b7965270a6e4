// The suite's own runner, what fixtures are checked for, and how long the suite waits.
import assert from 'node:assert/strict';
import type { Ia } from 'dapl';
import { reportOf, tableOf } from 'dapl/testing';
import { group } from '../../plugins/testing/suite/behaviour.js';
import { type Capability, PROVIDER_PAIRS } from '../../plugins/testing/suite/capabilities.js';
import type { CompliancePair, ProviderFixture } from '../../plugins/testing/suite/fixture.js';
import { Pace } from '../../plugins/testing/suite/pace.js';
import { lackLine, planOf } from '../../plugins/testing/suite/plan.js';
import { runGroups } from './groups-alone.js';

const none = {} as Ia;

/** A fixture whose pairs have these parts, and no adapters. */
function fixture(
  capabilities: readonly Capability[],
  parts: Partial<CompliancePair> = {},
): ProviderFixture & { closed: number } {
  const made = {
    capabilities,
    closed: 0,
    openPair: () =>
      Promise.resolve({
        ...{ active: none, passive: none, passiveAddress: '' },
        settle: () => Promise.resolve(),
        ...parts,
        close: () => {
          made.closed++;
          return Promise.resolve();
        },
      }),
  };
  return made;
}

const GROUPS = [
  group('Sending', (claim) => {
    claim('a send', () => Promise.resolve());
    claim('a read', () => Promise.reject(new Error('no bytes')), ['rdma-read']);
    claim('a wait', () => new Promise(() => undefined), ['latency']);
  }),
];

describe('The runner of the conformance suite', () => {
  it('tells of each behaviour how it ended, and closes every pair', async () => {
    const over = fixture(['rdma-read']);
    const seen: string[] = [];
    const results = await runGroups(over, GROUPS, { onResult: ({ name }) => seen.push(name) });
    assert.deepEqual(
      results.map(({ name, outcome, message, lacks }) => [name, outcome, message, lacks]),
      [
        ['a send', 'passed', undefined, []],
        ['a read', 'failed', 'no bytes', []],
        ['a wait', 'not-applicable', undefined, ['latency']],
      ],
    );
    assert.deepEqual(seen, ['a send', 'a read', 'a wait']);
    assert.equal(over.closed, 2);
  });

  it('runs what a filter takes, and gives up what does not end', async () => {
    const filter = (title: string): boolean => title === 'Sending: a wait';
    const results = await runGroups(fixture(['latency']), GROUPS, { filter, timeoutMs: 5 });
    assert.deepEqual(
      results.map(({ outcome, message }) => [outcome, message]),
      [['failed', 'it has not ended after 5 ms']],
    );
  });

  it('takes what nobody catches for a failure, and goes on', async () => {
    const throwing = group('Events', (claim) => {
      claim('a handler', () => {
        setImmediate(() => {
          throw new Error('thrown by a handler');
        });
        return new Promise(() => undefined);
      });
      claim('the next', () => Promise.resolve());
    });
    const results = await runGroups(fixture([]), [throwing]);
    assert.deepEqual(
      results.map(({ outcome, message }) => [outcome, message]),
      [
        ['failed', 'thrown by a handler'],
        ['passed', undefined],
      ],
    );
  });

  it('tells deviations from failures', async () => {
    const deviations = { 'Sending: a read': { why: 'the driver', failsWith: /no bytes/ } };
    const over = { ...fixture(['rdma-read']), deviations };
    const [, read] = await runGroups(over, GROUPS);
    assert.deepEqual([read?.outcome, read?.message], ['deviates', 'the driver']);
  });

  it('says what a behaviour that is not applicable needs', () => {
    const [, read] = planOf(fixture([]), GROUPS, PROVIDER_PAIRS);
    assert.equal(lackLine(read!), 'Sending: a read (needs rdma-read)');
  });
});

describe('The table of a report', () => {
  it('has what an assertion says, but not all of a long one', () => {
    const long = Array.from({ length: 30 }, (_, line) => `line ${line}`).join('\n');
    const result = { group: 'Sending', outcome: 'failed', lacks: [], durationMs: 1 } as const;
    const messageOf = (value: number): string => {
      const { message } = new assert.AssertionError({
        ...{ actual: value, expected: 2, operator: 'strictEqual' },
      });
      return message;
    };
    const table = tableOf(
      reportOf('mine', [
        { ...result, name: 'a send', message: messageOf(1) },
        { ...result, name: 'a read', message: long },
      ]),
    );
    assert.match(table, /a send \(Expected values to be strictly equal:\)\n {4}1 !== 2\n/);
    assert.match(table, /a read \(line 0\)\n {4}line 1\n(.*\n)* {4}line 11\n {4}\.\.\.$/);
  });
});

describe('A fixture of the conformance suite', () => {
  it('names capabilities that there are', () => {
    const wrong = fixture(['rdma-raed' as Capability]);
    assert.throws(
      () => planOf(wrong, GROUPS, PROVIDER_PAIRS),
      /"rdma-raed": it is one of .*rdma-read/,
    );
  });

  it('has what it claims', async () => {
    const [first] = await runGroups(fixture(['cut']), GROUPS);
    assert.match(first?.message ?? '', /claims "cut": its pairs have no cut/);
    const [whole] = await runGroups(fixture(['cut'], { cut: () => undefined }), GROUPS);
    assert.equal(whole?.outcome, 'passed');
  });

  it('gives everything back when its pair has closed, if not at once', async () => {
    let paths = 3;
    const usage = (): Record<string, number> => ({ paths, regions: 0 });
    const leaking = fixture(['usage'], { usage });
    const [leak] = await runGroups(leaking, GROUPS);
    assert.match(leak?.message ?? '', /after both adapters have closed the provider holds paths 3/);
    const settle = (): Promise<void> => Promise.resolve(void (paths -= 1));
    const [slow] = await runGroups(fixture(['usage'], { usage, settle }), GROUPS);
    assert.equal(slow?.outcome, 'passed');
    assert.equal(paths, 0);
  });
});

describe('The pace of the conformance suite', () => {
  it('is twice that of the slowest connection lately, within bounds', () => {
    const pace = new Pace();
    assert.equal(pace.settleMs, 20);
    pace.note(1);
    assert.equal(pace.settleMs, 5, 'a quick machine does not wait');
    pace.note(150);
    pace.note(3);
    assert.equal(pace.settleMs, 300, 'a slow one gets time');
    pace.note(60_000);
    assert.equal(pace.settleMs, 2000);
    for (let i = 0; i < 16; i++) pace.note(4);
    assert.equal(pace.settleMs, 8, 'what was slow once is forgotten');
  });
});
