/** A lock between processes, which the system frees when its holder is killed: a bound name. */
import { SpiError } from '../../../core/spi/index.js';
import type { UnixListener, UnixSockets } from '../../host/index.js';
import type { TableLock } from '../../shared-address/claims.js';

/** It is held for microseconds, unless its holder is stopped just then. */
const WAIT_MS = 1_000;
const SLEEP_MS = 1;

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
