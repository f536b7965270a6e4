/**
 * Buffers of SENDs, used in turn. Only each eighth SEND asks for a completion: its completion says
 * that all before it have left, too.
 */
import type { Lmr, LmrSegment } from 'dapl';

const EACH = 8;

export class SendRing {
  readonly slots: readonly LmrSegment[];
  /** Free-running counts of slots handed out, and known to be free again. */
  private taken = 0;
  private done = 0;

  /** @param slotCount at least 16: when it fills, one with a completion is under way */
  constructor(
    memory: Lmr,
    slotCount: number,
    private readonly slotBytes: number,
  ) {
    this.slots = Array.from({ length: slotCount }, (_, i) => memory.segment(i * slotBytes, 0));
  }

  /** Slots that can be taken. */
  get free(): number {
    return this.slots.length - (this.taken - this.done);
  }

  /** The next slot, cut to this length. */
  take(lengthBytes: number): LmrSegment {
    const place = this.taken++ % this.slots.length;
    return this.slots[place]!.set(place * this.slotBytes, lengthBytes);
  }

  /** Whether the SEND of the slot taken last is to have a completion. */
  get wantsCompletion(): boolean {
    return this.taken % EACH === 0;
  }

  /** What goes along with that completion. */
  get cookie(): number {
    return this.taken;
  }

  /** A completion has come. */
  complete(cookie: number): void {
    this.done = cookie;
  }
}
