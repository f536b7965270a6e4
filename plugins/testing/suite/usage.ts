/** What a provider holds, by kind, where its fixture can tell. */
import assert from 'node:assert/strict';
import type { CompliancePair } from './fixture.js';
import { settle } from './pace.js';

type Usage = Readonly<Record<string, number>>;

/** Giving back may take a while behind `close` in a kernel or in another thread. */
const LOOKS = 10;

/** `regions 3, paths 1`: kinds of which there are more than allowed. */
function excess(usage: Usage, allowed: Usage): string {
  return Object.entries(usage)
    .filter(([kind, count]) => count > (allowed[kind] ?? 0))
    .map(([kind, count]) => `${kind} ${count}, of which ${allowed[kind] ?? 0} may be`)
    .join('; ');
}

/** A closed pair holds nothing. */
export async function assertGivenBack(pair: CompliancePair): Promise<void> {
  await assertHolds(pair, {}, 'after both adapters have closed');
}

/** Soon the pair holds no more of any kind than this. */
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
