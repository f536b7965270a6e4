/** Our APR: always a refusal, since a RoCE port has no alternate paths. */
import { NO_DATA } from '../wire/cm-codec.js';
import type { CmApr } from '../wire/apr.js';

export function aprOf(ids: Pick<CmApr, 'localCommId' | 'remoteCommId' | 'apStatus'>): CmApr {
  return { ...ids, additionalInfoLength: 0, additionalInfo: NO_DATA, privateData: NO_DATA };
}
