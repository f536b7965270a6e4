// Each scenario of the page, played here: what it claims holds, for any seed, and equal settings
// give equal recordings.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { summaryOf } from '../../plugins/lab/run/dissect.js';
import { play } from '../../plugins/lab/run/play.js';
import { digestOf, type Recording } from '../../plugins/lab/run/recording.js';
import {
  parametersOf,
  type Scenario,
  type Settings,
  settingsFrom,
  settingsOf,
} from '../../plugins/lab/run/scenario.js';
import { SCENARIOS } from '../../plugins/lab/scenarios/index.js';

const root = join(import.meta.dirname, '../../..');
const SEEDS = [1, 2, 99];
const MOST_LINES = 60;

function played(scenario: Scenario, change: Partial<Settings> = {}): Promise<Recording> {
  return play(scenario, { ...settingsOf(scenario), ...change });
}

const named = (name: string): Scenario => SCENARIOS.find((each) => each.name === name)!;
const namesOf = ({ packets }: Recording): string[] =>
  packets.map(({ bytes }) => summaryOf(bytes).name);

describe('scenarios of the lab', () => {
  for (const scenario of SCENARIOS) {
    it(`${scenario.name}: what it claims holds, by each seed`, async () => {
      for (const seed of SEEDS) {
        const { claims, problem } = await played(scenario, { seed });
        assert.equal(problem, '');
        assert.ok(claims.length >= 2);
        for (const { text, holds } of claims) assert.ok(holds, `seed ${seed}: ${text}`);
      }
    });
  }

  it('have three sentences each, at most 60 lines, and links that lead somewhere', () => {
    const discussions = readFileSync(join(root, 'docs/discussions.md'), 'utf8');
    const anchors = [...discussions.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
      title
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    );
    for (const { name, text, discussion } of SCENARIOS) {
      assert.equal(text.length, 3, name);
      const source = readFileSync(join(root, `plugins/lab/scenarios/${name}.ts`), 'utf8');
      assert.ok(source.split('\n').length <= MOST_LINES + 1, `${name} is too long`);
      if (discussion) assert.ok(anchors.includes(discussion.anchor), discussion.anchor);
    }
  });

  it('give equal recordings for equal settings, and another for another seed', async () => {
    const digest = async (seed: number): Promise<string> =>
      digestOf(await played(named('lossy-write'), { seed }));
    // At the same time: a slider that is moved twice does so.
    const digests = await Promise.all([digest(7), digest(7), digest(8)]);
    assert.equal(digests[0], digests[1]);
    assert.notEqual(digests[0], digests[2]);
  });

  it('show each packet with its fate', async () => {
    const { packets } = await played(named('lossy-write'));
    const lost = packets.filter(({ fate }) => fate === 'lost');
    assert.ok(lost.length > 0);
    for (const { arrivals } of lost) assert.deepEqual(arrivals, []);
    for (const { fate, arrivals, sentUs } of packets) {
      if (fate === 'delivered') assert.ok(arrivals[0]!.timeUs > sentUs);
    }
    assert.ok(!packets.some(({ fate }) => fate === 'unknown'));
  });

  it('name messages of the connection manager, data and answers', async () => {
    const expected = ['REQ', 'REP', 'RTU', 'SEND ONLY', 'ACK', 'DREQ', 'DREP'];
    assert.deepEqual(namesOf(await played(named('hello'))), expected);
    assert.ok(namesOf(await played(named('rnr'))).includes('RNR NAK: wait 20.48 ms'));
  });

  it('record states of endpoints and connections by the names of their tables', async () => {
    const { states } = await played(named('hello'));
    const taken = (machine: string, node: number): string[] =>
      states.filter((row) => row.machine === machine && row.node === node).map(({ to }) => to);
    const ends = ['DISCONNECT_PENDING', 'DISCONNECTED'];
    assert.deepEqual(taken('EP', 0), ['ACTIVE_CONNECTION_PENDING', 'CONNECTED', ...ends]);
    assert.deepEqual(taken('EP', 1), ['COMPLETION_PENDING', 'CONNECTED', 'DISCONNECTED']);
    assert.ok(taken('CM', 1).includes('REP_SENT'));
  });

  it('go on under every fault of the sliders, and say so where they cannot end', async () => {
    const cut = await played(named('hello'), { cutAt: 25, cutFor: 20_000 });
    assert.ok(cut.packets.some(({ fate }) => fate === 'partitioned'));
    const killed = await played(named('hello'), { killAt: 26 });
    assert.match(killed.problem, /waits for something that does not happen/);
    const late = await played(named('hello'), { delay: 500 });
    assert.ok(late.endUs > 2000);
    const overtaken = await played(named('lossy-write'), { loss: 0, reorder: 30 });
    assert.ok(overtaken.claims.every(({ holds }) => holds));
  });
});

describe('settings in an address', () => {
  it('come back as they were written, and only those that differ are written', () => {
    const base = settingsOf(named('lossy-write'));
    const settings = { ...base, seed: 12, loss: 20, cutAt: 300 };
    const parameters = parametersOf(settings, base);
    assert.deepEqual(parameters, [
      ['seed', '12'],
      ['loss', '20'],
      ['cutAt', '300'],
    ]);
    assert.deepEqual(settingsFrom(new URLSearchParams(parameters), base), settings);
  });

  it('are kept within their limits, whatever the address says', () => {
    const base = settingsOf(named('hello'));
    const wild = new URLSearchParams('seed=-5&loss=1e9&delay=x&reorder=NaN&killAt=Infinity');
    const { seed, loss, delay, reorder, killAt } = settingsFrom(wild, base);
    assert.deepEqual([seed, loss, delay, reorder, killAt], [0, 50, 10, 0, 0]);
  });
});
