/**
 * Invariants: conditions that hold unless this program has a bug, whatever a consumer, a peer or a
 * device does. They are checked in tests and in simulation, where the process starts with
 * DAPL_ASSERT=1. Otherwise the switch is a constant that is false, and the compiler drops them.
 */
import { show } from './show.js';

/** Fixed when the module is loaded, and not exported: optimized code has no branch for it. */
const IS_ON = process.env['DAPL_ASSERT'] === '1';

/** A violated invariant: a bug in this program. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

/**
 * @param holds cheap to compute, and without side effects: it is not checked in production
 * @param invariant the condition as a sentence; a constant, since it is made at every call
 * @param value the value that violates it
 * @throws InvariantError
 */
export function assert(holds: boolean, invariant: string, value?: unknown): asserts holds {
  if (!IS_ON || holds) return;
  const of = value === undefined ? '' : `, for ${show(value)}`;
  throw new InvariantError(`it does not hold that ${invariant}${of}`);
}
