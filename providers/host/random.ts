/** Random numbers of the system's CSPRNG: rkeys, PSNs and communication ids come from here. */
import { randomFillSync } from 'node:crypto';
import type { Random } from '../../core/spi/index.js';

const BUFFERED_WORDS = 256;

/** A call to the system serves 256 numbers. A word is wiped when it has been handed out. */
export class SystemRandom implements Random {
  private readonly words = new Uint32Array(BUFFERED_WORDS);
  private next = BUFFERED_WORDS;

  u32(): number {
    if (this.next === BUFFERED_WORDS) {
      randomFillSync(this.words);
      this.next = 0;
    }
    const value = this.words[this.next] ?? 0;
    this.words[this.next++] = 0;
    return value;
  }
}
