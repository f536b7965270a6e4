/** Checks the objects that a provider holds, if its fixture can count them. */
import assert from 'node:assert/strict';
import type { CompliancePair } from './fixture.js';
import { settle } from './pace.js';

type Usage = Readonly<Record<string, number>>;

/** A kernel or another thread may release objects some time after `close`. */
const LOOKS = 10;

/** Kinds above their allowed count, as text: `regions 3, paths 1`. */
function excess(usage: Usage, allowed: Usage): string {
  return Object.entries(usage)
    .filter(([kind, count]) => count > (allowed[kind] ?? 0))
    .map(([kind, count]) => `${kind} ${count}, of which ${allowed[kind] ?? 0} may be`)
    .join('; ');
}

/** Asserts that a closed pair holds nothing. */
export async function assertGivenBack(pair: CompliancePair): Promise<void> {
  await assertHolds(pair, {}, 'after both adapters have closed');
}

/** Asserts that the pair soon holds no more of any kind than allowed. */
export async function assertHolds(
  pair: CompliancePair,
  allowed: Usage,
  when: string,
): Promise<void> {
  const usage = (): Usage => pair.usage?.() ?? {};
  for (let look = 1; look < LOOKS && excess(usage(), allowed) !== ''; look++) await settle(pair);
  const left = excess(usage(), allowed);
  assert.equal(left, '', `${when} the provider holds ${left}`);
}
