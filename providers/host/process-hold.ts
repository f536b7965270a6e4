/** Counts reasons to keep the process alive and switches the handles that do it. */
import type { ProcessHold } from '../../core/spi/index.js';

export class ProcessHoldCounter implements ProcessHold {
  private reasons = 0;

  /** @param onChange told true when the first reason comes, false when the last one goes */
  constructor(private readonly onChange: (alive: boolean) => void) {}

  retain(): void {
    if (this.reasons++ === 0) this.onChange(true);
  }

  /** @throws RangeError when nothing was retained: a release too many would hide a live one */
  release(): void {
    if (this.reasons === 0) throw new RangeError('released more often than retained');
    if (--this.reasons === 0) this.onChange(false);
  }
}
