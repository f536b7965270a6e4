// The differential test without the kernel: the reference agrees with itself, and every fault is
// in some script.
import assert from 'node:assert/strict';

import { WrFlags } from '../../../core/spi/index.js';
import { differences } from './compare.js';
import { playReference } from './reference.js';
import {
  FAULTS,
  makeScript,
  type Script,
  type ScriptRequest,
  scriptWithoutFences,
} from './script.js';

describe('differential scripts', () => {
  it('are the same for the same seed, and each fault is in some', () => {
    assert.deepEqual(makeScript(7, 1024), makeScript(7, 1024));
    const seeds = Array.from({ length: 20 }, (_, index) => index + 1);
    const faults = seeds.flatMap((seed) => makeScript(seed, 1024).lives.map(({ fault }) => fault));
    for (const fault of FAULTS) assert.ok(faults.includes(fault), fault);
  });

  for (const seed of [1, 2, 3, 4]) {
    it(`end alike between two devices of ours each time: seed ${seed}`, async () => {
      const script = makeScript(seed, 1024);
      const played = await playReference(script);
      assert.deepEqual(differences(played, await playReference(script)), []);
      const failed = played.records.filter(({ sends }) =>
        sends.some(({ status }) => status !== 'SUCCESS'),
      );
      assert.ok(failed.length > 0, 'no life has failed');
    }).timeout(30_000);
  }

  it('without fences are the same otherwise', () => {
    const script = makeScript(1, 1024);
    const requests = ({ lives }: Script): ScriptRequest[] =>
      lives.flatMap(({ rounds }) => rounds.flatMap((round) => round.requests));
    const unfenced = requests(scriptWithoutFences(script));
    const fenced = requests(script).filter(({ flags }) => (flags & WrFlags.FENCE) !== 0);
    assert.ok(fenced.length > 0);
    assert.deepEqual(
      unfenced,
      requests(script).map((each) => ({ ...each, flags: each.flags & ~WrFlags.FENCE })),
    );
  });

  it('show what differs', async () => {
    const script = makeScript(1, 1024);
    const played = await playReference(script);
    const [first, ...others] = played.records;
    assert.ok(first);
    const changed = { ...played, records: [{ ...first, target: first.target ^ 1 }, ...others] };
    const found = differences(played, changed);
    assert.equal(found.length, 1);
    assert.match(found[0] ?? '', /^life 0 .*the target's bytes/);
  });
});
