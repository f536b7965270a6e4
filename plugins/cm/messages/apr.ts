/** Our APR: always a refusal, since a RoCE port has no alternate paths (wire facts 4.2, 4.5). */
import type { CmApr } from '../wire/apr.js';

const NONE = new Uint8Array(0);

export function aprOf(ids: Pick<CmApr, 'localCommId' | 'remoteCommId' | 'apStatus'>): CmApr {
  return { ...ids, additionalInfoLength: 0, additionalInfo: NONE, privateData: NONE };
}
