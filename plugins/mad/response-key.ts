/** What makes a response match its request: transaction id, class and peer (ib_mad's rule). */
import type { Gid } from '../../core/spi/index.js';
import { classOf, hiTidOf, loTidOf } from './header.js';

export function responseKey(mad: DataView, peer: Gid): string {
  return `${hiTidOf(mad)}:${loTidOf(mad)}:${classOf(mad)}:${peer.join('.')}`;
}
