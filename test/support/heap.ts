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

/**
 * Bytes of the heap that one more of them takes, in a process that runs other tests as well.
 *
 * A round counts what the process itself allots meanwhile (compiled code, remembered types: tens
 * of kilobytes, now more, now less), so a count below some thousands says nothing.
 */
export function heapBytes(count: number, make: () => unknown): number {
  const rounds: number[] = [];
  // Place for all is taken before: an array that grows would be counted with what is in it.
  const kept = new Array<unknown>(count);
  for (let round = 0; round <= 3; round++) {
    kept.fill(null);
    // Once is enough for objects that have no finalizers: the heap of a whole test run is large.
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < count; i++) kept[i] = make();
    collect();
    rounds.push((process.memoryUsage().heapUsed - before) / count);
  }
  // The first round compiles what the others run; the median is kept from a burst either way.
  const [, median = NaN] = rounds.slice(1).sort((x, y) => x - y);
  return median;
}
