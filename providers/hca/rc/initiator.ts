/** The READs and atomics of a requester: those in flight, and the chunks that READs go in. */
import { RcOutstandingReads } from './outstanding-reads.js';
import { RcReadChunks } from './read-chunks.js';

export class RcInitiator {
  private readonly chunks: RcReadChunks;
  private readonly inFlight: RcOutstandingReads;

  /**
   * @param windowPackets the largest window
   * @param depth READs and atomics that the peer has granted
   * @param psn where the first of them begins, or before it
   */
  constructor(windowPackets: number, depth: number, psn: number) {
    this.chunks = new RcReadChunks(windowPackets, depth, psn);
    this.inFlight = new RcOutstandingReads(depth);
  }

  get idle(): boolean {
    return this.inFlight.count === 0;
  }

  /** As many are in flight as the peer has granted. */
  get full(): boolean {
    return this.inFlight.full;
  }

  /** Chunks adapt to the window. `maxPsn` is one after all that has been asked for. */
  fit(windowPackets: number, una: number, maxPsn: number): void {
    this.chunks.fit(windowPackets, una, maxPsn);
  }

  /** One after the last packet of the chunk that `packet` belongs to, with that PSN. */
  chunkEnd(packet: number, psn: number, packetCount: number): number {
    return this.chunks.end(packet, psn, packetCount);
  }

  /** Asked for: the answer ends before PSN `end`. */
  add(end: number): void {
    this.inFlight.add(end);
  }

  /** Every PSN before `una` has been answered. */
  retire(una: number): void {
    this.inFlight.retire(una);
  }

  /** They will be asked for again. */
  clear(): void {
    this.inFlight.clear();
  }
}
