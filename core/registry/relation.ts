/** Tells whether two adapters can be alternate paths to the same peers (DAT_HA_RELATIONSHIP). */
import type { ProviderInstance } from '../spi/index.js';

/** CONFLICTING: the two providers do not agree. */
export type ProviderRelation = 'FALSE' | 'TRUE' | 'UNKNOWN' | 'CONFLICTING';

/** Asks both providers; a device is related to itself. */
export function relationOf(one: ProviderInstance, other: ProviderInstance): ProviderRelation {
  if (one.deviceKey === other.deviceKey) return 'TRUE';
  const answers = [one.relatedTo?.(other), other.relatedTo?.(one)];
  const [first, second = first] = answers.filter((answer) => answer !== undefined);
  if (first === undefined) return 'UNKNOWN';
  if (first !== second) return 'CONFLICTING';
  return first ? 'TRUE' : 'FALSE';
}
