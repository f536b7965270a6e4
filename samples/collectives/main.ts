/**
 * Ranks of one group, here all in one process, each with its own address. Each integrates 4 / (1 +
 * x^2) over a part of the interval, and they add up the results. `node main.js [RANKS]`
 */
import { openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { allreduce, barrier } from './collectives.js';
import { joinGroup, leaveGroup } from './group.js';

const STEPS = 1_000_000;
const ranks = Number(process.argv[2] ?? 4);
if (!Number.isInteger(ranks) || ranks < 1 || ranks > 64) {
  console.error(`${process.argv[2]}: the number of ranks is an integer from 1 to 64`);
  process.exit(1);
}
const addresses = Array.from({ length: ranks }, (_, rank) => `127.0.3.${rank + 1}`);

async function run(rank: number): Promise<number> {
  await using ia = await openIa(softroce({ addresses: [addresses[rank] ?? ''] }));
  const group = await joinGroup({ ia, rank, addresses });
  const [mine, total] = [new Float64Array(1), new Float64Array(1)];
  for (let i = rank; i < STEPS; i += ranks) {
    const x = (i + 0.5) / STEPS;
    mine[0] = (mine[0] ?? 0) + 4 / (1 + x * x) / STEPS;
  }
  await allreduce(group, mine, total, 'SUM');
  await barrier(group);
  const result = total[0] ?? NaN;
  await leaveGroup(group);
  return result;
}

const results = await Promise.all(addresses.map((_, rank) => run(rank)));
for (const [rank, pi] of results.entries()) console.log(`rank ${rank}: pi = ${pi.toFixed(10)}`);
