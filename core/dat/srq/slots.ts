/**
 * Core's side of a shared receive ring. Slots complete in any order, so they form a free-list; the
 * provider gets their numbers through `submissions`. After construction, only a resize allocates.
 */
import { toDatError } from '../../errors/index.js';
import { RQE, type SharedReceiveQueue } from '../../spi/index.js';
import type { Segments } from '../memory/segment.js';
import { EntryRing, RECEIVE_ENTRY, EntryFlag } from '../work/entry-ring.js';

export class SrqSlots extends EntryRing {
  /** Slots posted whose completions have not been scanned. */
  outstanding = 0;
  /** A stack of slot numbers: `vacant[0]` to `vacant[vacantCount - 1]`. */
  private vacant = new Uint32Array(0);
  private vacantCount = 0;
  private burstDepth = 0;
  private ended = false;

  /**
   * @param maxSegments of one receive
   * @param limit receives that may be outstanding
   */
  constructor(
    private readonly srq: SharedReceiveQueue,
    maxSegments: number,
    limit: number,
  ) {
    super(srq.ring.slots, limit, maxSegments, RECEIVE_ENTRY);
    this.grow();
  }

  /** True for posted slots: only those have flags. */
  protected isHeld(slot: number): boolean {
    return this.flagsOf(slot) !== 0;
  }

  /** Writes a receive into a vacant slot; the caller has checked that there is one. */
  put(segments: Segments, cookie: number): void {
    const { submissions } = this.srq.ring;
    const slot = (this.producer = this.vacant[--this.vacantCount] ?? 0);
    this.putReceive(segments, cookie);
    this.setFlags(slot, EntryFlag.SIGNALLED);
    this.outstanding++;
    submissions.words[submissions.wordOf(submissions.producer)] = slot;
    submissions.producer = submissions.producer + 1;
  }

  /** Frees the slot that a completion names. Returns false when it is not posted. */
  reclaim(slot: number): boolean {
    if (this.outstanding === 0 || slot > this.ring.mask || !this.isHeld(slot)) return false;
    this.release(slot);
    return true;
  }

  /** Holds doorbells back until the outermost burst ends. */
  beginBurst(): void {
    this.burstDepth++;
  }

  endBurst(): void {
    this.burstDepth--;
    if (!this.ended) this.kick('srq.burst');
  }

  /**
   * Rings the doorbell for submitted slots, except during a burst.
   * @throws DatError when it refuses some: `value` is how many of the last, which are not posted
   */
  kick(operation: string): void {
    if (this.burstDepth > 0) return;
    try {
      this.srq.ringDoorbell();
    } catch (error) {
      const value = this.withdraw();
      throw toDatError(error, { operation, value, hints: REFUSED });
    }
  }

  /** Takes back refused entries: those posted last. Returns how many. */
  private withdraw(): number {
    const { submissions } = this.srq.ring;
    const { consumer, producer } = submissions;
    const refused = (producer - consumer) >>> 0;
    for (let i = 1; i <= refused; i++) {
      this.release(submissions.words[submissions.wordOf(producer - i)] ?? 0);
    }
    submissions.producer = consumer;
    return refused;
  }

  /** The provider's ring may have grown: slots keep their numbers. */
  grow(): void {
    const first = this.vacant.length;
    this.ring = this.srq.ring.slots;
    const { entries } = this.ring;
    if (entries <= first) return;
    const vacant = new Uint32Array(entries);
    vacant.set(this.vacant);
    this.vacant = vacant;
    for (let slot = entries - 1; slot >= first; slot--) vacant[this.vacantCount++] = slot;
  }

  override discard(): void {
    this.ended = true;
    this.outstanding = 0;
    super.discard();
  }

  private release(slot: number): void {
    this.unpin(slot);
    this.setFlags(slot, 0);
    this.vacant[this.vacantCount++] = slot;
    this.outstanding--;
  }

  private setFlags(slot: number, flags: number): void {
    this.ring.words[this.ring.wordOf(slot) + RQE.FLAGS] = flags;
  }
}

const POST_AGAIN = 'post those again that are not posted: `value` says how many of the last';
const REFUSED = { EINVAL: POST_AGAIN, ENOMEM: POST_AGAIN };
