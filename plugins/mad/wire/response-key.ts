/**
 * The key that matches a response to its request: transaction id, class and peer (ib_mad's rule).
 */
import type { Gid } from '../../../core/spi/index.js';
import type { MadHeader } from '../../../core/spi/modules/mad-header.js';

export function responseKey(header: MadHeader, peer: Gid): string {
  const { transactionIdHi, transactionIdLo, managementClass } = header;
  return `${transactionIdHi}:${transactionIdLo}:${managementClass}:${peer.join('.')}`;
}
