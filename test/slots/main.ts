/** `npm run soak:slots`: processes of a shared address are killed, by seed (kill-soak.ts). */
import '../support/asserting.js';
import { Command } from 'commander';
import { loopback } from '../support/loopback.js';
import { killBySeed } from './kill-soak.js';
import { killAll } from './programs.js';

const program = new Command('soak:slots')
  .description('Kills processes that share an address, and watches those that are left.')
  .option('--seed <number>', 'decides what happens when', Number, Date.now() % 1_000_000)
  .option('--count <number>', 'processes to kill', Number, 1000)
  .parse();

const { seed, count } = program.opts<{ readonly seed: number; readonly count: number }>();
const addresses = { shared: loopback(86, 1), outside: loopback(86, 2), udpPort: 4791 };
const startMs = performance.now();
const { failures, ...rest } = await killBySeed(seed, count, addresses);
await killAll();
console.log(`seed ${seed}, ${Math.round((performance.now() - startMs) / 1000)} s:`, rest);
for (const failure of failures) console.error(failure);
if (failures.length > 0) process.exitCode = 1;
