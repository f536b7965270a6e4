/**
 * How much of what the connections of one adapter have sent may be on its way at a time. The device
 * of a peer takes it all in by one buffer (softroce: a socket buffer, 4 MiB where the system allows
 * that), and what finds no room there has to be sent again. Fifty streams that each filled a window
 * of their own lost a tenth to a fifth of their packets so, and had half of the throughput.
 */

/** All of them together, in bytes: less than such a buffer has. */
const TOGETHER_BYTES = 3 * 1024 * 1024;
/** Each of them at least, in bytes, however many they are. */
const LEAST_BYTES = 16 * 1024;

export class Share {
  /** Connections that have something on its way. */
  private busy = 0;

  /**
   * What each of them may have on its way, in bytes. One that began when fewer were busy has more,
   * until that is acknowledged.
   */
  get bytes(): number {
    return Math.max(LEAST_BYTES, Math.floor(TOGETHER_BYTES / Math.max(1, this.busy)));
  }

  /** One more has something on its way. */
  enter(): void {
    this.busy++;
  }

  /** One has nothing on its way any more. */
  leave(): void {
    this.busy--;
  }
}
