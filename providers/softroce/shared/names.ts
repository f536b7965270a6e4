/**
 * Abstract names by which processes that share a device find each other. They belong to the network
 * namespace, as its addresses do; the system frees them when their process ends, so nothing is ever
 * left behind.
 */
import { createHash } from 'node:crypto';
import { type Gid, SpiError } from '../../../core/spi/index.js';
import { readFileSync } from 'node:fs';
import type { UnixListener, UnixSockets } from '../../host/index.js';
import type { TableLock } from '../../shared-address/claims.js';

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

/** It is held for microseconds, unless its holder is stopped just then. */
const WAIT_MS = 1_000;
const SLEEP_MS = 1;

/** A lock between processes, which the system frees when its holder is killed: a bound name. */
export class NameLock implements TableLock {
  constructor(
    private readonly sockets: UnixSockets,
    private readonly name: string,
  ) {}

  withLock<T>(body: () => T): T {
    const held = bindName(this.sockets, this.name, WAIT_MS);
    if (held === undefined) {
      throw new SpiError('EBUSY', 'another process holds the list of listeners of this device', {
        hint: 'it may be stopped (SIGSTOP, a debugger): let it go on, or end it',
      });
    }
    try {
      return body();
    } finally {
      held.close();
    }
  }
}

/**
 * @param waitMs how long the thread waits while another has the name
 * @returns undefined where it has it for longer
 */
export function bindName(
  sockets: UnixSockets,
  name: string,
  waitMs: number,
): UnixListener | undefined {
  for (let waitedMs = 0; ; waitedMs += SLEEP_MS) {
    try {
      return sockets.listenUnix(name, 1);
    } catch (error) {
      if ((error as { code?: string }).code !== 'EADDRINUSE') throw error;
      if (waitedMs >= waitMs) return undefined;
      Atomics.wait(NEVER, 0, 0, SLEEP_MS);
    }
  }
}

const NEVER = new Int32Array(new SharedArrayBuffer(4));
