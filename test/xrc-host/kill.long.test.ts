/** Openers and hosts of an XRC domain are killed by seed: a few; `npm run soak:xrc` kills 200. */
import assert from 'node:assert/strict';
import { killAll } from '../slots/programs.js';
import { killBySeed } from './kill-soak.js';
import { World } from './world.js';

const KILLS = 10;

describe('XRC domains: openers and hosts are killed at a message, by seed', function () {
  this.timeout(600_000);
  const world = new World(89);
  after(async () => {
    await killAll();
    world.end();
  });

  it(`${KILLS} of them`, async () => {
    const { failures, openers, hosts } = await killBySeed(world, 7, KILLS);
    assert.deepEqual(failures, []);
    assert.ok(openers > 0 && hosts > 0, `${openers} openers, ${hosts} hosts`);
  });
});
