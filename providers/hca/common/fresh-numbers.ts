/**
 * Allocates object numbers upward from a random start: a freed number is reused only after all
 * others.
 */
import { type Random, SpiError } from '../../../core/spi/index.js';

export class FreshNumbers {
  private next: number;

  constructor(
    random: Random,
    private readonly first: number,
    private readonly last: number,
  ) {
    this.next = first + (random.u32() % (last - first + 1));
  }

  /**
   * @param what they are the numbers of, for the error
   * @throws SpiError('ENOMEM') when all of them are in use
   */
  take(what: string, isUsed: (number: number) => boolean): number {
    for (let tries = this.first; tries <= this.last; tries++) {
      const number = this.next;
      this.next = number === this.last ? this.first : number + 1;
      if (!isUsed(number)) return number;
    }
    throw new SpiError('ENOMEM', `every ${what} number is in use`);
  }
}
