/** Sends that no peer acknowledges (UC, UD): complete when the port has taken their packets. */
import { WcStatus } from '../../../core/spi/index.js';
import type { SoftQueuePair } from './queue-pair.js';

export class UnacknowledgedSends {
  /** By ring slot: bytes of the message, and the number of its last packet. */
  private readonly lengthBytes: Uint32Array;
  private readonly lastPacket: Float64Array;

  constructor(private readonly qp: SoftQueuePair) {
    const { entries } = qp.sendRing;
    this.lengthBytes = new Uint32Array(entries);
    this.lastPacket = new Float64Array(entries);
  }

  /** The last packet of a request has been built. */
  add(index: number, lengthBytes: number): void {
    const { hca, sendRing } = this.qp;
    const slot = index & sendRing.mask;
    this.lengthBytes[slot] = lengthBytes;
    this.lastPacket[slot] = hca.tx.built;
    hca.awaitTaken(this.qp);
  }

  /**
   * The port has taken every packet up to the number `taken`.
   * @param end one after the last request that has been added
   */
  complete(taken: number, end: number): void {
    const { qp } = this;
    const { mask } = qp.sendRing;
    // Flushed requests are behind `oldest`, wherever `end` was.
    while (((end - qp.oldest) | 0) > 0 && this.lastPacket[qp.oldest & mask]! <= taken) {
      qp.completeOldest(WcStatus.SUCCESS, this.lengthBytes[qp.oldest & mask]!, 0);
    }
    qp.checkDrained();
  }
}
