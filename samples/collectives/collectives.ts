/**
 * Collective operations over a group. Every rank calls the same ones in the same order, with arrays
 * of one type and length; a call resolves when this rank's part is done.
 */
import { exchange, type Group, neighbour, receive, send } from './group.js';
import { combine, copy, type Numbers, type Reduction } from './numbers.js';

const NOTHING = new Uint8Array(0);

/** Resolves when every rank has called it: log2(size) rounds of empty messages. */
export async function barrier(group: Group): Promise<void> {
  for (let distance = 1; distance < group.size; distance *= 2) {
    await exchange(
      group,
      [neighbour(group, distance), NOTHING],
      [neighbour(group, -distance), NOTHING],
    );
  }
}

/** Sends the root's array to all ranks, down a binomial tree. */
export async function broadcast(group: Group, data: Numbers, root = 0): Promise<void> {
  const { size } = group;
  const place = neighbour(group, -root);
  let mask = 1;
  for (; mask < size; mask *= 2) {
    if ((place & mask) === 0) continue;
    await receive(group, neighbour(group, -mask), data);
    break;
  }
  for (mask /= 2; mask >= 1; mask /= 2) {
    if (place + mask < size) await send(group, neighbour(group, mask), data);
  }
}

/** Combines all arrays, element by element, into the root's `result`, up a binomial tree. */
export async function reduce(
  group: Group,
  data: Numbers,
  result: Numbers,
  reduction: Reduction,
  root = 0,
): Promise<void> {
  checkSame(data, result.length);
  const { size } = group;
  const place = neighbour(group, -root);
  const sum = group.rank === root ? result : data.slice();
  const other = data.slice();
  copy(sum, data);
  for (let mask = 1; mask < size; mask *= 2) {
    if ((place & mask) !== 0) {
      await send(group, neighbour(group, -mask), sum);
      return;
    }
    if (place + mask >= size) continue;
    await receive(group, neighbour(group, mask), other);
    combine(reduction, sum, other);
  }
}

/** Like `reduce`, with the result on every rank. */
export async function allreduce(
  group: Group,
  data: Numbers,
  result: Numbers,
  reduction: Reduction,
): Promise<void> {
  await reduce(group, data, result, reduction, 0);
  await broadcast(group, result, 0);
}

/** Collects the blocks of all ranks, in their order, in the root's `result`. */
export async function gather(
  group: Group,
  block: Numbers,
  result: Numbers,
  root = 0,
): Promise<void> {
  if (group.rank !== root) return send(group, root, block);
  checkSame(result, block.length * group.size);
  copy(part(result, root, block.length), block);
  const others = otherRanks(group);
  await Promise.all(others.map((rank) => receive(group, rank, part(result, rank, block.length))));
}

/** Sends each rank its block of the root's array. */
export async function scatter(
  group: Group,
  data: Numbers,
  block: Numbers,
  root = 0,
): Promise<void> {
  if (group.rank !== root) return receive(group, root, block);
  checkSame(data, block.length * group.size);
  copy(block, part(data, root, block.length));
  const others = otherRanks(group);
  await Promise.all(others.map((rank) => send(group, rank, part(data, rank, block.length))));
}

/** Like `gather`, with the result on every rank: each block goes once around the ring. */
export async function allgather(group: Group, block: Numbers, result: Numbers): Promise<void> {
  const { length } = block;
  checkSame(result, length * group.size);
  copy(part(result, group.rank, length), block);
  const [left, right] = [neighbour(group, -1), neighbour(group, 1)];
  for (let step = 0; step < group.size - 1; step++) {
    const out = part(result, neighbour(group, -step), length);
    const into = part(result, neighbour(group, -step - 1), length);
    await exchange(group, [right, out], [left, into]);
  }
}

/** Exchanges blocks: block j of rank i becomes block i of rank j. */
export async function alltoall(group: Group, data: Numbers, result: Numbers): Promise<void> {
  const length = data.length / group.size;
  checkSame(result, data.length);
  if (!Number.isInteger(length)) throw new RangeError(`${data.length} is not ${group.size} blocks`);
  copy(part(result, group.rank, length), part(data, group.rank, length));
  for (let distance = 1; distance < group.size; distance++) {
    const [to, from] = [neighbour(group, distance), neighbour(group, -distance)];
    await exchange(group, [to, part(data, to, length)], [from, part(result, from, length)]);
  }
}

/** Combines the arrays of ranks 0 to i into `result` of rank i. */
export async function scan(
  group: Group,
  data: Numbers,
  result: Numbers,
  reduction: Reduction,
): Promise<void> {
  checkSame(result, data.length);
  copy(result, data);
  if (group.rank > 0) {
    const before = data.slice();
    await receive(group, group.rank - 1, before);
    combine(reduction, result, before);
  }
  if (group.rank < group.size - 1) await send(group, group.rank + 1, result);
}

/** Combines all arrays; each rank gets the block of its number. */
export async function reduceScatter(
  group: Group,
  data: Numbers,
  block: Numbers,
  reduction: Reduction,
): Promise<void> {
  checkSame(data, block.length * group.size);
  const whole = data.slice();
  await reduce(group, data, whole, reduction, 0);
  await scatter(group, whole, block, 0);
}

function part(data: Numbers, index: number, length: number): Numbers {
  return data.subarray(index * length, (index + 1) * length);
}

function otherRanks({ size, rank }: Group): number[] {
  return Array.from({ length: size }, (_, i) => i).filter((other) => other !== rank);
}

function checkSame(data: Numbers, length: number): void {
  if (data.length === length) return;
  throw new RangeError(`an array of ${data.length} elements where ${length} are needed`);
}
