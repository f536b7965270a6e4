/**
 * Limits the bytes in flight over all connections of an adapter. The peer's device receives them
 * all through one buffer (softroce: a socket buffer, 4 MiB where the system allows it), and packets
 * that do not fit are retransmitted. When each of fifty streams filled a window of its own, a tenth
 * to a fifth of the packets were lost, and the throughput halved.
 */

/** Limit of all connections together, in bytes: less than such a buffer. */
const TOGETHER_BYTES = 3 * 1024 * 1024;
/** Minimum of each connection, in bytes, whatever their number. */
const LEAST_BYTES = 16 * 1024;

export class Share {
  /** Connections with bytes in flight. */
  private busy = 0;

  /**
   * Bytes that each connection may have in flight. One that began when fewer were busy has more,
   * until those are acknowledged.
   */
  get bytes(): number {
    return Math.max(LEAST_BYTES, Math.floor(TOGETHER_BYTES / Math.max(1, this.busy)));
  }

  /** One more connection has bytes in flight. */
  enter(): void {
    this.busy++;
  }

  /** One connection has no more bytes in flight. */
  leave(): void {
    this.busy--;
  }
}
