/** How much memory the process holds on to, after the garbage has gone. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** What nothing refers to any more is gone, finalizers' work too. */
export async function collectGarbage(): Promise<void> {
  for (let i = 0; i < 3; i++) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Bytes of JavaScript objects and of their ArrayBuffers. */
export async function heldBytes(): Promise<number> {
  await collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Bytes of the heap that one more of them takes: the least of some rounds, for what else runs. */
export function heapBytes(count: number, make: () => unknown): number {
  const rounds: number[] = [];
  const kept: unknown[] = Array.from({ length: count }, make);
  // Once is enough for objects that have no finalizers: the heap of a whole test run is large.
  collect();
  for (let round = 0; round < 3; round++) {
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < count; i++) kept.push(make());
    collect();
    rounds.push((process.memoryUsage().heapUsed - before) / count);
  }
  return Math.min(...rounds);
}
