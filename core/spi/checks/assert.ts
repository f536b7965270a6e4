/**
 * Invariants: what holds unless this program has a mistake, whatever a consumer, a peer or a
 * device does. They are looked at in tests and in simulation: where the process starts with
 * DAPL_ASSERT=1. Elsewhere the switch is a constant that is false, and the compiler drops them.
 */
import { show } from './show.js';

/** Fixed when the module is loaded, and its own: optimized code has no branch for it. */
const IS_ON = process.env['DAPL_ASSERT'] === '1';

/** An invariant does not hold: a mistake in this program. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

/**
 * @param holds cheap to find out, and without a side effect: it is not looked at in production
 * @param invariant what holds, as a sentence; a constant, since it is made at every call
 * @param value what it does not hold for
 * @throws InvariantError
 */
export function assert(holds: boolean, invariant: string, value?: unknown): asserts holds {
  if (!IS_ON || holds) return;
  const of = value === undefined ? '' : `, for ${show(value)}`;
  throw new InvariantError(`it does not hold that ${invariant}${of}`);
}
