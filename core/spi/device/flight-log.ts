/**
 * Flight records: the last events of a failed object, with their times. There may be thousands of
 * such objects, and most are never asked. So they write rows of numbers into one ring, and each
 * remembers only its last row. A row says how far back the object's previous row lies. When the
 * ring is full, the oldest rows are overwritten, whichever object they belong to.
 */

/** Words of a row: the time in microseconds as a double, and 4 numbers. */
const ROW = { TIME: 0, BACK: 2, EVENT: 3, A: 4, B: 5, WORDS: 6 } as const;
const FIRST_ROWS = 64;
/** 384 KiB. A power of two. */
const MOST_ROWS = 1 << 14;
const MOST_U32 = 2 ** 32 - 1;

/** The last row of an object without any rows. */
export const NO_ROW = -1;

export interface FlightRow {
  readonly timeUs: number;
  readonly event: number;
  readonly a: number;
  readonly b: number;
}

export class FlightLog {
  private words = new Uint32Array(FIRST_ROWS * ROW.WORDS);
  private times = new Float64Array(this.words.buffer);
  private rows = FIRST_ROWS;
  private written = 0;

  /** @param mostRows limit of its growth: a power of two, 64 or more */
  constructor(private readonly mostRows = MOST_ROWS) {}

  /**
   * Writes a row.
   * @param last the writer's last row, or NO_ROW
   * @param event its kind, as u32; larger numbers are written as the largest, as in the next two
   * @param a a figure about it
   * @param b another one
   * @returns the writer's last row from now on
   */
  add(last: number, timeUs: number, event: number, a = 0, b = 0): number {
    const row = this.written++;
    if (row === this.rows && row < this.mostRows) this.grow();
    const { words } = this;
    const at = this.wordOf(row);
    this.times[(at + ROW.TIME) >>> 1] = timeUs;
    words[at + ROW.BACK] = last === NO_ROW ? 0 : Math.min(row - last, MOST_U32);
    words[at + ROW.EVENT] = event;
    words[at + ROW.A] = Math.min(a, MOST_U32);
    words[at + ROW.B] = Math.min(b, MOST_U32);
    return row;
  }

  /** The rows up to `last` that are still there, `most` at most, oldest first. */
  read(last: number, most: number): FlightRow[] {
    const { words } = this;
    const found: FlightRow[] = [];
    for (let row = last; row >= 0 && this.written - row <= this.rows && found.length < most;) {
      const at = this.wordOf(row);
      found.push({
        timeUs: this.times[(at + ROW.TIME) >>> 1]!,
        event: words[at + ROW.EVENT]!,
        a: words[at + ROW.A]!,
        b: words[at + ROW.B]!,
      });
      const back = words[at + ROW.BACK]!;
      row = back === 0 ? NO_ROW : row - back;
    }
    return found.reverse();
  }

  private wordOf(row: number): number {
    return (row & (this.rows - 1)) * ROW.WORDS;
  }

  /** The ring has not wrapped around yet, so every row stays in its place. */
  private grow(): void {
    const { words } = this;
    this.rows *= 2;
    this.words = new Uint32Array(this.rows * ROW.WORDS);
    this.words.set(words);
    this.times = new Float64Array(this.words.buffer);
  }
}
