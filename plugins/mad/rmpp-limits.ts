/**
 * Limits on memory for RMPP transfers: anyone can send first segments and never the rest. All
 * agents of a module share them.
 */
import { assert, integer, optional } from '../../core/spi/checks/index.js';

/** Integers from 1 on. */
export interface RmppLimits {
  /** Longest transfer that is received, in bytes of memory, up to 2^31 - 1; default 4 MiB. */
  readonly maxTransferBytes: number;
  /** Bytes of memory for all transfers being received, up to 2^53 - 1; default 32 MiB. */
  readonly maxTotalBytes: number;
  /**
   * Transfers that are being received at a time, in all and from one address, up to 65,536; default
   * 256 and 32.
   */
  readonly maxTransfers: number;
  readonly maxTransfersPerPeer: number;
  /** Complete ones remembered for ten seconds, up to 2^20, the oldest go first; default 1024. */
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

/** A complete transfer. */
export interface Forgettable {
  /** Ends its time early; it calls `unremember`. */
  abandon(): void;
}

export class RmppAllowance {
  private bytes = 0;
  private transfers = 0;
  private readonly byPeer = new Map<string, number>();
  private readonly remembered = new Set<Forgettable>();

  constructor(readonly limits: RmppLimits) {}

  /** Bytes of memory that transfers hold at present. */
  get bytesHeld(): number {
    return this.bytes;
  }

  get transfersHeld(): number {
    return this.transfers;
  }

  /** @param total what the transfer would hold then */
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

  /** A transfer from that address begins. */
  admit(peer: string): boolean {
    const { maxTransfers, maxTransfersPerPeer } = this.limits;
    const ofPeer = this.byPeer.get(peer) ?? 0;
    if (this.transfers >= maxTransfers || ofPeer >= maxTransfersPerPeer) return false;
    this.transfers++;
    this.byPeer.set(peer, ofPeer + 1);
    return true;
  }

  /** It is over. */
  dismiss(peer: string): void {
    const ofPeer = (this.byPeer.get(peer) ?? 0) - 1;
    assert(ofPeer >= 0, 'a transfer is over once', peer);
    this.transfers--;
    if (ofPeer > 0) this.byPeer.set(peer, ofPeer);
    else this.byPeer.delete(peer);
  }

  /** A complete transfer stays known for a while, unless too many do. */
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
