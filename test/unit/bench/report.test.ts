import assert from 'node:assert/strict';
import { compareResults, verdictOf } from '../../../bench/against/files.js';
import { changesOf, conclusion } from '../../../bench/against/changes.js';
import { opener } from '../../../bench/against/measure.js';
import { type Measurement, cell } from '../../../bench/compare/cells.js';
import { countersTable } from '../../../bench/compare/counted.js';
import { matrix } from '../../../bench/compare/matrix.js';
import { table } from '../../../bench/compare/report.js';
import type { Row } from '../../../bench/compare/rows.js';
import { median, signTest } from '../../../bench/compare/statistics.js';
import { type Summary, summarize } from '../../../bench/compare/summary.js';
import { MissingPeer } from '../../../bench/peers/build.js';

const ours = cell('softroce', 'ping', 8);
const theirs = cell('node-tcp', 'ping', 8);

function measured(values: readonly number[], p99 = 9): Measurement[] {
  return values.map((value) => ({ value, p99, bytes: 2 ** 30, cpuSeconds: 1 }));
}

function summaryOf(row: Row, mine: readonly number[], other: readonly number[]): Summary {
  return summarize(row, (name) => measured(name === row.ours.name ? mine : other));
}

const PING: Row = {
  label: 'a ping',
  unit: 'us',
  ours,
  rivals: [{ cell: theirs, goal: 1, cpuGoal: 0.9 }],
  goal: 2.5,
  tailGoal: 3,
};

describe('Report of the benchmark', () => {
  it('divides round by round and judges the median', () => {
    const summary = summaryOf(PING, [3, 2, 4], [6, 4, 2]);
    assert.deepEqual(summary.rivals[0]!.ratios, [0.5, 0.5, 2]);
    assert.deepEqual(
      summary.verdicts.map(({ goal, value, met }) => [goal, value, met]),
      [
        ['≤ 2.5', 3, false],
        ['≤ 3', 3, true],
      ],
    );
    assert.deepEqual(
      summary.rivals[0]!.verdicts.map(({ goal, value, met }) => [goal, value, met]),
      [
        ['≤ 1', 0.5, true],
        ['≤ 0.9', 1, false],
      ],
    );
  });

  it('wants rates high', () => {
    const row: Row = { ...PING, unit: 'M/s', rivals: [{ cell: theirs, goal: 1 }], goal: 2 };
    const [verdict] = summaryOf(row, [3, 3], [6, 6]).rivals[0]!.verdicts;
    assert.deepEqual([verdict!.goal, verdict!.met], ['≥ 1', false]);
  });

  it('judges what a message takes longer, of times and of rates', () => {
    const more = (unit: Row['unit'], mine: readonly number[], other: readonly number[]) => {
      const row: Row = { ...PING, unit, rivals: [{ cell: theirs, moreUsGoal: 1.5 }] };
      const summary = summaryOf(row, mine, other);
      const [{ moreUs, verdicts }] = summary.rivals as [(typeof summary.rivals)[number]];
      const [{ what, goal, value, met }] = verdicts as [(typeof verdicts)[number]];
      return { summary, moreUs, verdict: [what, goal, value, met] };
    };
    const time = more('us', [5, 6, 9], [4, 4, 4]);
    assert.deepEqual(time.moreUs, [1, 2, 5]);
    assert.deepEqual(time.verdict, ['more us', '≤ 1.5', 2, false]);
    assert.match(table([time.summary]), /Node TCP .* more us ≤ 1\.5 \(2\.00\) NOT met$/);
    assert.match(matrix([time.summary]), /\| 1\.50 \(4\.00\); \*\*2\.00 > 1\.5\*\* us more \|/);
    // 0.5 M/s is a message each 2 us, 2 M/s one each 0.5.
    const rate = more('M/s', [0.5], [2]);
    assert.deepEqual(rate.verdict, ['more us', '≤ 1.5', 1.5, true]);
  });

  it('calls DAT by its name beside a connection in promises', () => {
    const flow = cell('flow', 'ping', 8);
    const summary = summaryOf({ ...PING, ours: flow, rivals: [{ cell: ours }] }, [3], [2]);
    assert.match(table([summary]), /a ping +dapl\/flow .*\n +softroce, DAT /);
  });

  it('leaves a rival out that was not measured', () => {
    assert.deepEqual(summaryOf(PING, [3], []).rivals, []);
  });

  it('prints a line each for ours and for every rival', () => {
    const summary = summaryOf(PING, [3, 2, 4], [6, 4, 2]);
    const [heading = '', own = '', rival = ''] = table([summary]).split('\n');
    assert.match(heading, /^row +who +median/);
    assert.match(own, /^a ping +softroce +3\.00 \(2\.00–4\.00\) us +9\.00 .*NOT met/);
    assert.match(rival, /^ +Node TCP .* 0\.500 \(0\.500–2\.00\) +≤ 1 met/);
  });

  it('prints what our devices have counted, the median of the rounds', () => {
    const counted = [3, 1, 2].map((rnrNaksSent) => ({ sentPackets: 9, rnrNaksSent }));
    const [one] = measured([1]);
    const rounds = counted.map((counters) => ({ ...one!, counters }));
    const summary = summarize(PING, (name) => (name === ours.name ? rounds : measured([1])));
    const nothing = summaryOf({ ...PING, ours: theirs, label: 'theirs' }, [1], [1]);
    const [headings = '', , line = '', more] = countersTable([summary, nothing], 'markdown').split(
      '\n',
    );
    assert.match(headings, /^\| row \| who \| sentPackets \| .* \| rnrNaksSent /);
    assert.match(line, /^\| a ping \| softroce \| 9 \| 0 \| 0 \| 2 \| 0 /);
    assert.equal(more, undefined);
  });

  it('prints a row a line in Markdown, with each goal beside its ratio', () => {
    const [headings = '', rule = '', line = ''] = matrix([
      summaryOf(PING, [3, 2, 4], [6, 4, 2]),
    ]).split('\n');
    assert.equal(headings, '| row | softroce | p99, us | CPU s/GiB | Node TCP | our own |');
    assert.equal(rule, '| --- | --- | --- | --- | --- | --- |');
    const own = '3.00 (2.00–4.00) us: **3.00 > 2.5**';
    assert.equal(line, `| a ping | ${own} | 9.00; / p50 3.00 ≤ 3 |  | 0.500 ≤ 1 (4.00) |  |`);
  });

  it('takes medians', () => {
    assert.equal(median([3, 1, 2]), 2);
    assert.equal(median([4, 1, 3, 2]), 2.5);
    assert.ok(Number.isNaN(median([])));
  });
});

describe('What changed beyond noise', () => {
  it('puts a number on chance', () => {
    assert.equal(signTest([2, 2, 2, 2, 2, 2]), 2 / 64);
    assert.equal(signTest([0.5, 0.5, 0.5, 0.5, 0.5, 2]), 14 / 64);
    assert.equal(signTest([2, 0.5]), 1);
    assert.equal(signTest([1, 1]), 1);
  });

  it('needs six rounds of six on one side, and two percent', () => {
    const row: Row = { ...PING, unit: 'GB/s' };
    const verdict = (after: readonly number[]): string =>
      changesOf([
        summaryOf(
          row,
          after,
          after.map(() => 1),
        ),
      ])[0]!.verdict;
    assert.equal(verdict([1.1, 1.2, 1.1, 1.3, 1.1, 1.1]), 'better');
    assert.equal(verdict([0.9, 0.9, 0.9, 0.9, 0.9, 0.9]), 'worse');
    assert.equal(verdict([1.1, 1.2, 1.1, 1.3, 1.1]), 'noise');
    assert.equal(verdict([1.1, 1.2, 1.1, 0.9, 1.1, 1.1]), 'noise');
    assert.equal(verdict([1.01, 1.01, 1.01, 1.01, 1.01, 1.01]), 'noise');
  });

  it('leaves out what the other commit has not', async () => {
    assert.deepEqual(changesOf([summaryOf(PING, [3], [])]), []);
    const open = opener({ worker: 'none', commit: 'abc123', entries: ['dapl', 'dapl/spi'] });
    await assert.rejects(open('before:channel', '192.0.2.1', '192.0.2.2'), (error) => {
      assert.ok(error instanceof MissingPeer);
      assert.equal(error.message, 'abc123 has no dapl/flow/channel');
      return true;
    });
    await assert.rejects(open('before:node-tcp', '192.0.2.1', '192.0.2.2'), /no former build/);
  });

  it('knows that less time is better, and says what changed', () => {
    const six = [0.5, 0.5, 0.5, 0.5, 0.5, 0.5];
    const changes = changesOf([summaryOf(PING, six, [1, 1, 1, 1, 1, 1])]);
    assert.deepEqual(
      changes.map(({ what, verdict }) => [what, verdict]),
      [
        ['us', 'better'],
        ['p99 us', 'noise'],
      ],
    );
    assert.equal(conclusion(changes), 'Better: a ping [us] × 0.500.');
    assert.equal(conclusion(changes.slice(1)), 'Nothing changed beyond noise.');
  });

  it('compares two results of different times only by what lies wholly apart', () => {
    assert.equal(verdictOf([1, 2, 3, 4], [5, 6, 7, 8], true), '** better');
    assert.equal(verdictOf([1, 2, 3, 4], [5, 6, 7, 8], false), '** worse');
    assert.equal(verdictOf([1, 2, 3, 4], [4, 6, 7, 8], true), 'noise');
    assert.equal(verdictOf([1, 2, 3], [5, 6, 7], true), 'too few rounds');
    const result = (revision: string, values: readonly number[]) => {
      return { revision, rows: [summaryOf(PING, values, values)] };
    };
    const text = compareResults(result('old', [5, 6, 7, 8]), result('new', [1, 2, 3, 4]), 'text');
    assert.match(text, /^row +what +old +new +verdict\na ping +us .*\*\* better$/);
  });
});
