/**
 * Abstract names by which processes that share a device find each other. They belong to the network
 * namespace, as its addresses do; the system frees them when their process ends, so nothing is ever
 * left behind.
 */
import { createHash } from 'node:crypto';
import type { Gid } from '../../../core/spi/index.js';
import { readFileSync } from 'node:fs';

const DIGITS = 32;

export interface GroupNames {
  /** The process that listens by it gives out slots. */
  readonly broker: string;
  /** The process that has it may change what the shared table says of listeners. */
  readonly lock: string;
  /** Is there as long as the slot's process lives. */
  slot(slot: number): string;
}

/** One group for the same addresses, in the same order, and the same UDP port. */
export function groupNames(gids: readonly Gid[], udpPort: number): GroupNames {
  const hash = createHash('sha256');
  for (const gid of gids) hash.update(gid);
  const broker = `dapl-shared/${hash.update(String(udpPort)).digest('hex').slice(0, DIGITS)}`;
  return { broker, lock: `${broker}/lock`, slot: (slot) => `${broker}/${slot}` };
}

// Finds out whether processes share an address: the system lists their names (/proc/net/unix).

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
