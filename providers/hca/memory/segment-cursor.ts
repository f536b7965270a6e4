/**
 * A place in the scatter/gather list of a work request. Lists are read in the ring, where core
 * wrote them; each segment's key, bounds and rights are checked whenever bytes of it move.
 */
import { Access, SGE } from '../../../core/spi/index.js';
import { MEMORY_CHECK, type MemoryTable } from './memory.js';
import type { Domain } from './domain.js';
import type { PlacementQueue } from './placement-queue.js';
import type { TransmitQueue } from '../sending/transmit-queue.js';

const TWO_32 = 4294967296;

/** Sum of the lengths of a list, in bytes. */
export function segmentBytes(words: Uint32Array, first: number, count: number): number {
  let total = 0;
  for (let i = 0; i < count; i++) total += words[first + i * SGE.WORDS + SGE.LENGTH]!;
  return total;
}

const NOWHERE = new Uint32Array(0);

export class SegmentCursor {
  private words: Uint32Array = NOWHERE;
  private first = 0;
  private count = 0;
  private index = 0;
  /** Bytes of segment `index` that lie behind. */
  private used = 0;
  /** Bytes from the start of the list. */
  private position = 0;

  /** Goes to the start of a list. */
  start(words: Uint32Array, first: number, count: number): void {
    this.words = words;
    this.first = first;
    this.count = count;
    this.index = 0;
    this.used = 0;
    this.position = 0;
  }

  /** Goes to a byte of the list; stepping on costs nothing, stepping back starts over. */
  seek(position: number): void {
    if (position === this.position) return;
    if (position < this.position) this.start(this.words, this.first, this.count);
    let rest = position - this.position;
    while (rest > 0 && this.index < this.count) {
      const step = Math.min(rest, this.segmentLength() - this.used);
      this.advance(step);
      rest -= step;
    }
  }

  /** Adds the next `length` bytes to the packet being built; a MEMORY_CHECK verdict. */
  gather(memory: MemoryTable, domain: Domain, length: number, tx: TransmitQueue): number {
    let rest = length;
    while (rest > 0) {
      const step = this.take(memory, domain, rest, 0);
      if (step < 0) return -step;
      if (step > 0 && (step < length || !tx.addFew(memory.region, memory.offset, step))) {
        tx.addSegment(memory.region.port, memory.offset, step);
      }
      rest -= step;
    }
    return MEMORY_CHECK.OK;
  }

  /** Places `length` bytes of a received packet next; a MEMORY_CHECK verdict. */
  scatter(
    memory: MemoryTable,
    domain: Domain,
    length: number,
    source: number,
    placements: PlacementQueue,
  ): number {
    let rest = length;
    while (rest > 0) {
      const step = this.take(memory, domain, rest, Access.LOCAL_WRITE);
      if (step < 0) return -step;
      if (step > 0) placements.add(source + length - rest, step, memory.region, memory.offset);
      rest -= step;
    }
    return MEMORY_CHECK.OK;
  }

  /** Writes bytes of our own making next; a MEMORY_CHECK verdict. */
  write(memory: MemoryTable, domain: Domain, bytes: Uint8Array): number {
    for (const byte of bytes) {
      let step = 0;
      while (step === 0) step = this.take(memory, domain, 1, Access.LOCAL_WRITE);
      if (step < 0) return -step;
      memory.region.view.setUint8(memory.offset, byte);
    }
    return MEMORY_CHECK.OK;
  }

  /**
   * Goes over the next bytes of the present segment, `most` at most, after their check: `memory`
   * tells where they are.
   * @returns how many; or a MEMORY_CHECK verdict, negative
   */
  private take(memory: MemoryTable, domain: Domain, most: number, access: number): number {
    if (this.index >= this.count) return -MEMORY_CHECK.BOUNDS;
    const step = Math.min(most, this.segmentLength() - this.used);
    if (step > 0) {
      const verdict = this.check(memory, domain, step, access);
      if (verdict !== MEMORY_CHECK.OK) return -verdict;
    }
    this.advance(step);
    return step;
  }

  private segmentLength(): number {
    return this.words[this.first + this.index * SGE.WORDS + SGE.LENGTH]!;
  }

  private check(memory: MemoryTable, domain: Domain, length: number, access: number): number {
    const at = this.first + this.index * SGE.WORDS;
    const words = this.words;
    const low = words[at + SGE.ADDRESS_LO]! + this.used;
    const high = words[at + SGE.ADDRESS_HI]! + (low >= TWO_32 ? 1 : 0);
    return memory.check(domain, words[at + SGE.LKEY]!, low >>> 0, high, length, access);
  }

  private advance(step: number): void {
    this.used += step;
    this.position += step;
    if (this.used === this.segmentLength()) {
      this.index += 1;
      this.used = 0;
    }
  }
}
