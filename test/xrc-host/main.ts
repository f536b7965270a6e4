/** `npm run soak:xrc`: openers and hosts of an XRC domain are killed, by seed (kill-soak.ts). */
import '../support/asserting.js';
import { Command } from 'commander';
import { killAll } from '../slots/programs.js';
import { killBySeed } from './kill-soak.js';
import { World } from './world.js';

const program = new Command('soak:xrc')
  .description('Kills processes that share an XRC domain, and watches those that are left.')
  .option('--seed <number>', 'decides what happens when', Number, Date.now() % 1_000_000)
  .option('--count <number>', 'processes to kill', Number, 200)
  .parse();

const { seed, count } = program.opts<{ readonly seed: number; readonly count: number }>();
const world = new World(90);
const startMs = performance.now();
const { failures, ...rest } = await killBySeed(world, seed, count);
await killAll();
world.end();
console.log(`seed ${seed}, ${Math.round((performance.now() - startMs) / 1000)} s:`, rest);
for (const failure of failures) console.error(failure);
if (failures.length > 0) process.exitCode = 1;
