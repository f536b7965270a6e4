/** Addresses that are valid on one link only. */
import type { Gid } from '../../../core/spi/index.js';

/** fe80::/10. */
export function isLinkLocal(gid: Gid): boolean {
  return gid[0] === 0xfe && ((gid[1] ?? 0) & 0xc0) === 0x80;
}
