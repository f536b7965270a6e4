/**
 * The last messages and transitions of a connection, oldest first: kept as time and words, and put
 * into lines when somebody asks. Nobody asks of most connections, and there may be many.
 */
const CAPACITY = 48;
/** A time in microseconds, and the three parts of a note. */
const STRIDE = 4;

export class FlightRecord {
  private readonly entries: (number | string)[] = [];
  private readonly originUs: number;

  constructor(nowUs: number) {
    this.originUs = Math.floor(nowUs);
  }

  /** `text`, `text from` or `text: from -> to`. */
  add(nowUs: number, text: string, from = '', to = ''): void {
    const { entries } = this;
    if (entries.length === CAPACITY * STRIDE) entries.splice(0, STRIDE);
    entries.push(Math.round(nowUs - this.originUs), text, from, to);
  }

  read(): readonly string[] {
    const { entries } = this;
    const lines: string[] = [];
    for (let at = 0; at < entries.length; at += STRIDE) {
      const [afterUs, text, from, to] = entries.slice(at, at + STRIDE);
      const time = (Number(afterUs) / 1000).toFixed(3);
      const rest = to === '' ? ` ${from}`.trimEnd() : `: ${from} -> ${to}`;
      lines.push(`+${time} ms ${text}${rest}`);
    }
    return lines;
  }
}
