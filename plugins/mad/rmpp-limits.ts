/**
 * Limits on memory for RMPP transfers: anyone can send first segments and never the rest. All
 * agents of a module share them.
 */
import { assert, integer, optional } from '../../core/spi/checks/index.js';

/** Integers from 1 on. */
export interface RmppLimits {
  /** Longest transfer to receive, in bytes of memory, up to 2^31 - 1; default 4 MiB. */
  readonly maxTransferBytes: number;
  /** Bytes of memory for all transfers being received, up to 2^53 - 1; default 32 MiB. */
  readonly maxTotalBytes: number;
  /**
   * Incoming transfers at a time, in total and from one address, up to 65,536; default 256 and 32.
   */
  readonly maxTransfers: number;
  readonly maxTransfersPerPeer: number;
  /**
   * Complete transfers to remember for ten seconds, up to 2^20; the oldest are dropped first;
   * default 1024.
   */
  readonly maxRemembered: number;
}

const MAX_TRANSFERS = 65_536;

/** Allowed values of each limit. */
export const RMPP_LIMITS = {
  maxTransferBytes: optional(integer(1, 2 ** 31 - 1)),
  maxTotalBytes: optional(integer(1, Number.MAX_SAFE_INTEGER)),
  maxTransfers: optional(integer(1, MAX_TRANSFERS)),
  maxTransfersPerPeer: optional(integer(1, MAX_TRANSFERS)),
  maxRemembered: optional(integer(1, 2 ** 20)),
};

export const DEFAULT_RMPP_LIMITS: RmppLimits = {
  maxTransferBytes: 4 << 20,
  maxTotalBytes: 32 << 20,
  maxTransfers: 256,
  maxTransfersPerPeer: 32,
  maxRemembered: 1024,
};

/** A complete transfer that is remembered. */
export interface Forgettable {
  /** Forgets the transfer early; it calls `unremember`. */
  abandon(): void;
}

export class RmppAllowance {
  private bytes = 0;
  private transfers = 0;
  private readonly byPeer = new Map<string, number>();
  private readonly remembered = new Set<Forgettable>();

  constructor(readonly limits: RmppLimits) {}

  /** Bytes of memory that transfers use now. */
  get bytesHeld(): number {
    return this.bytes;
  }

  get transfersHeld(): number {
    return this.transfers;
  }

  /**
   * Reserves memory; false if there is too little. @param total size of the whole transfer after it
   */
  take(bytes: number, total: number): boolean {
    const { maxTransferBytes, maxTotalBytes } = this.limits;
    if (total > maxTransferBytes || this.bytes + bytes > maxTotalBytes) return false;
    this.bytes += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    assert(bytes <= this.bytes, 'what is given back was taken', bytes);
    this.bytes -= bytes;
  }

  /** Admits a new transfer from an address; false if there are too many. */
  admit(peer: string): boolean {
    const { maxTransfers, maxTransfersPerPeer } = this.limits;
    const ofPeer = this.byPeer.get(peer) ?? 0;
    if (this.transfers >= maxTransfers || ofPeer >= maxTransfersPerPeer) return false;
    this.transfers++;
    this.byPeer.set(peer, ofPeer + 1);
    return true;
  }

  /** Releases the place of a transfer that has ended. */
  dismiss(peer: string): void {
    const ofPeer = (this.byPeer.get(peer) ?? 0) - 1;
    assert(ofPeer >= 0, 'a transfer is over once', peer);
    this.transfers--;
    if (ofPeer > 0) this.byPeer.set(peer, ofPeer);
    else this.byPeer.delete(peer);
  }

  /** Remembers a complete transfer for a while, unless there are too many. */
  remember(transfer: Forgettable): void {
    this.remembered.add(transfer);
    if (this.remembered.size <= this.limits.maxRemembered) return;
    for (const oldest of this.remembered) {
      oldest.abandon();
      return;
    }
  }

  unremember(transfer: Forgettable): void {
    this.remembered.delete(transfer);
  }
}
