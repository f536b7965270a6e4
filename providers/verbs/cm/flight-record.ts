/** The last events and transitions of a connection, oldest first. */
const CAPACITY = 48;

export class FlightRecord {
  private readonly notes: { readonly afterUs: number; readonly text: string }[] = [];

  constructor(private readonly originUs: number) {}

  add(nowUs: number, text: string): void {
    if (this.notes.length === CAPACITY) this.notes.shift();
    this.notes.push({ afterUs: nowUs - this.originUs, text });
  }

  read(): readonly string[] {
    return this.notes.map(({ afterUs, text }) => `+${(afterUs / 1000).toFixed(3)} ms ${text}`);
  }
}
