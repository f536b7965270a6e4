/** Finds out whether processes share an address: the system lists their names (/proc/net/unix). */
import { readFileSync } from 'node:fs';
import type { Gid } from '../../../core/spi/index.js';
import { groupNames } from './names.js';

/** @returns false, too, where the list cannot be read */
export function isGroupThere(gids: readonly Gid[], udpPort: number): boolean {
  const { broker } = groupNames(gids, udpPort);
  try {
    const names = readFileSync('/proc/net/unix', 'latin1').split('\n');
    return names.some((line) => line.endsWith(` @${broker}`));
  } catch {
    return false;
  }
}
