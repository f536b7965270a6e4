/** What can be tuned in the software HCA; every default says why it is what it is. */
export interface HcaParameters {
  /**
   * PSNs that a queue pair may have outstanding at most; losses make it fewer for a while. 512
   * packets of 4 KiB are 2 MiB: a full pump of both sides takes 75 us, which is 0.5 MiB at 7 GB/s,
   * and the rest bridges the times that the system runs something else. Half of a 4 MiB socket
   * buffer.
   */
  readonly windowPackets: number;
  /** Packets that one queue pair may put out before the next one has its turn. */
  readonly burstPackets: number;
  /** The local ACK timer is at least this long: a garbage collection must not look like a loss. */
  readonly minAckTimeoutUs: number;
  /**
   * Least time between two retries that hints (ICMP port unreachable) bring forward. With seven
   * retries a dead peer is known after 7 * 120 ms and one ACK timeout.
   */
  readonly unreachableRetryUs: number;
  readonly maxSge: number;
  readonly maxInlineBytes: number;
  readonly maxResponderResources: number;
  readonly maxInitiatorDepth: number;
  readonly maxQueuePairWr: number;
  readonly maxQueuePairs: number;
  /**
   * What two of ours may do that no standard asks of a peer (core/spi/peer-agreement.ts) is offered
   * and kept. False: every peer is treated as one of another make.
   */
  readonly agreements: boolean;
}

export const defaultParameters: HcaParameters = {
  windowPackets: 512,
  burstPackets: 64,
  minAckTimeoutUs: 1000,
  unreachableRetryUs: 120_000,
  maxSge: 16,
  maxInlineBytes: 512,
  maxResponderResources: 128,
  maxInitiatorDepth: 128,
  maxQueuePairWr: 1 << 20,
  maxQueuePairs: 1 << 20,
  agreements: true,
};

/** The largest message (IBTA 9.7.1). */
export const MAX_MESSAGE_BYTES = 0x80000000;
