/**
 * What happened, as a hash of everything and as the last lines of text. Two runs of one seed have
 * the same hash, or something in them is not decided by the seed.
 */
import type { TappedPacket } from '../../providers/mock/wire-packet.js';

const KEPT_LINES = 40;

export class Violation extends Error {
  override readonly name = 'Violation';
}

export class Trace {
  private readonly number = new Float64Array(1);
  private readonly words = new Uint32Array(this.number.buffer);
  private readonly kept: string[] = [];
  private low = 0x811c9dc5;
  private high = 0xcbf29ce4;

  constructor(
    private readonly now: () => number,
    private readonly log: ((line: string) => void) | undefined,
  ) {}

  /** 16 hexadecimal digits. */
  get hash(): string {
    const text = (word: number): string => (word >>> 0).toString(16).padStart(8, '0');
    return text(this.high) + text(this.low);
  }

  /** The last lines, oldest first. */
  get lines(): readonly string[] {
    return this.kept;
  }

  packet(packet: TappedPacket): void {
    this.time();
    this.add(packet.length);
    for (let at = 0; at < 12; at += 4) this.add(packet.view.getUint32(at));
  }

  numbers(...values: readonly number[]): void {
    this.time();
    for (const value of values) this.add(value);
  }

  note(line: string): void {
    const text = `${this.now().toFixed(3).padStart(14)} ${line}`;
    if (this.kept.push(text) > KEPT_LINES) this.kept.shift();
    this.log?.(text);
  }

  private time(): void {
    this.number[0] = this.now();
    this.add(this.words[0] as number);
    this.add(this.words[1] as number);
  }

  private add(word: number): void {
    this.low = Math.imul(this.low ^ word, 0x01000193);
    this.high = Math.imul(this.high ^ (word + this.low), 0x85ebca6b) ^ (this.high >>> 13);
  }
}
