/** Numbers that a seed decides. */
import { SeededRandom } from '../../../../../plugins/faults/grammar/seeded-random.js';

/** @returns what gives one after the other, from 0 on, below 1 */
export function randomOf(seed: number): () => number {
  const random = new SeededRandom(seed);
  return () => random.unit();
}
