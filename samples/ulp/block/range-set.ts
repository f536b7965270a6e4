/** A set of block numbers, kept as ranges, for blocks that take no space in a backend. */

/** Blocks from `first` up to, not including, `end`. */
interface Range {
  readonly first: bigint;
  readonly end: bigint;
}

export class RangeSet {
  /** Ascending; neither overlapping nor touching. */
  private ranges: Range[] = [];

  /** Number of separate ranges, to limit memory. */
  get rangeCount(): number {
    return this.ranges.length;
  }

  add(first: bigint, count: bigint): void {
    if (count <= 0n) return;
    let end = first + count;
    const from = this.firstThatIsNot((range) => range.end < first);
    let to = from;
    for (; to < this.ranges.length && this.ranges[to]!.first <= end; to++) {
      const touched = this.ranges[to]!;
      if (touched.first < first) first = touched.first;
      if (touched.end > end) end = touched.end;
    }
    this.ranges.splice(from, to - from, { first, end });
  }

  remove(first: bigint, count: bigint): void {
    if (count <= 0n || this.ranges.length === 0) return;
    const end = first + count;
    const from = this.firstThatIsNot((range) => range.end <= first);
    const left: Range[] = [];
    let to = from;
    for (; to < this.ranges.length && this.ranges[to]!.first < end; to++) {
      const cut = this.ranges[to]!;
      if (cut.first < first) left.push({ first: cut.first, end: first });
      if (cut.end > end) left.push({ first: end, end: cut.end });
    }
    if (to > from) this.ranges.splice(from, to - from, ...left);
  }

  /**
   * True if the block is in the set, and the number of blocks for which that holds: at most up to
   * `end`.
   */
  runAt(at: bigint, end: bigint): { readonly isIn: boolean; readonly blocks: bigint } {
    const next = this.ranges[this.firstThatIsNot((range) => range.end <= at)];
    const isIn = next !== undefined && next.first <= at;
    const until = next === undefined ? end : isIn ? next.end : next.first;
    return { isIn, blocks: (until < end ? until : end) - at };
  }

  /** Index of the first range that is not before, by bisection. */
  private firstThatIsNot(isBefore: (range: Range) => boolean): number {
    let low = 0;
    let high = this.ranges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(this.ranges[middle]!)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
