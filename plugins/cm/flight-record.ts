/** The last messages and transitions of a connection: text for people, oldest first. */
const CAPACITY = 48;

export class FlightRecord {
  private readonly lines: string[] = [];
  private readonly originUs: number;

  constructor(nowUs: number) {
    this.originUs = nowUs;
  }

  add(nowUs: number, text: string): void {
    if (this.lines.length === CAPACITY) this.lines.shift();
    this.lines.push(`+${((nowUs - this.originUs) / 1000).toFixed(3)} ms ${text}`);
  }

  read(): readonly string[] {
    return [...this.lines];
  }
}
