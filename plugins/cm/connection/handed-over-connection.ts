/** A connection that another process's CM has: what is left of it here. */
import type { CmConnection, Gid } from '../../../core/spi/index.js';

/** It is established, and ends, where its queue pair is. */
export class HandedConnection implements CmConnection {
  readonly state = 'HANDED_OVER';

  constructor(
    readonly remoteGid: Gid,
    readonly localPort: number,
  ) {}

  disconnect(): void {
    // With the queue pair.
  }

  notifyEstablished(): void {
    // The data has come there.
  }

  abandon(): void {
    // As `disconnect`.
  }

  flightRecord(): readonly string[] {
    return [];
  }
}
