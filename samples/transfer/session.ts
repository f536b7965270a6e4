/** An interface adapter over softroce for the length of one transfer. */
import { type Ia, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { sentenceOf, TransferFailure } from './failure.js';

/** Port (connection qualifier) that the receiver listens on unless told otherwise. */
export const DEFAULT_PORT = 7471;

/**
 * Opens `address`, does the work, and closes what it made, whatever comes.
 * @throws TransferFailure when the address or its UDP port cannot be had
 */
export async function withIa<T>(address: string, work: (ia: Ia) => Promise<T>): Promise<T> {
  let ia: Ia;
  try {
    ia = await openIa(softroce({ addresses: [address] }));
  } catch (cause) {
    throw new TransferFailure(`Cannot open ${address}: ${sentenceOf(cause)}`, 1, { cause });
  }
  try {
    return await work(ia);
  } finally {
    await ia.close('abrupt');
  }
}
