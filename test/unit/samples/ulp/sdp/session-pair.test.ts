import assert from 'node:assert/strict';
import { PairLife } from './pair-life.js';
import { PLANTS } from './plants.js';

/** Lives of each kind: gentle ones end in order, all bytes read. */
const LIVES = 150;

describe('sdp: two sessions by seed', () => {
  for (const isGentle of [true, false]) {
    it(`${isGentle ? 'to their end' : 'closed, aborted and killed'}: bytes, credits, modes`, () => {
      const modes = new Set<string>();
      const kinds = new Set<number>();
      for (let seed = 1; seed <= LIVES; seed++) {
        const life = new PairLife(seed, { isGentle });
        assert.deepEqual(life.run(), [], `seed ${seed}`);
        life.modesSeen.forEach((mode) => modes.add(mode));
        for (const kind of life.kindsSeen.keys()) kinds.add(kind);
      }
      assert.deepEqual([...modes].sort(), ['BUFFERED', 'COMBINED', 'PIPELINED']);
      // Of those that a session sends, every one came about.
      const sent = [2, 4, 5, 6, 7, 8, 0xb, 0xc, 0xfd, 0xfe, 0xff];
      if (!isGentle) sent.push(3, 9, 0xa);
      assert.deepEqual(
        sent.filter((kind) => !kinds.has(kind)),
        [],
      );
    });
  }

  for (const [name, { isAgainstTheRules, plant }] of Object.entries(PLANTS)) {
    it(`notices a planted bug: ${name}`, () => {
      let isFound = false;
      let isJudged = false;
      for (let seed = 1; seed <= LIVES && !(isFound && isJudged); seed++) {
        const life = new PairLife(seed, { isGentle: true, plant: ([host]) => host && plant(host) });
        isFound ||= life.run().length > 0;
        isJudged ||= !isAgainstTheRules || life.judged.length > 0;
      }
      assert.ok(isFound, 'by the lives');
      assert.ok(isJudged, 'by the second model');
    });
  }
});
