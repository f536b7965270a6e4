/** Decides when spinning consumers of this process yield their core. No clock, no I/O. */
import { LIMITS } from './limits.js';
import { SPIN } from './turning.js';

const SPIN_US = LIMITS.SPIN_US.value;
/** If looks are further apart, the consumer has done something else. */
const IN_A_ROW_US = LIMITS.IDLE_SLICE_US.value;
const SPINS = SPIN.byFacts;
const { REST } = SPIN.actions;

/** One for all devices of a process: a loop over several must not rest while one is busy. */
export class SpinPacer {
  private lookedUs = -Infinity;
  /** Since then there have been looks in a row, all of them in vain. */
  private sinceUs = -Infinity;

  /**
   * A consumer that spins has looked at a device. Whether it rests: SPIN.
   * @param busy something has come, or waits to be sent
   * @param nowUs the time of that look, in microseconds
   */
  rests(busy: boolean, nowUs: number): boolean {
    const inARow = nowUs - this.lookedUs <= IN_A_ROW_US;
    this.lookedUs = nowUs;
    if (busy || !inARow) this.sinceUs = nowUs;
    const long = nowUs - this.sinceUs > SPIN_US;
    return SPINS[(busy ? 1 : 0) | (inARow ? 2 : 0) | (long ? 4 : 0)] === REST;
  }
}
