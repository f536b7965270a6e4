/**
 * Limits the time of handlers in one turn of the event loop. The clock is read before each of them,
 * except for a few after short ones. No clock: the time is passed in.
 */
import { LIMITS } from './limits.js';
import { HANDLER } from './turning.js';

const HANDLERS_US = LIMITS.HANDLERS_US.value;
const SHORT_HANDLERS_US = LIMITS.SHORT_HANDLERS_US.value;
const SHORT_HANDLERS = LIMITS.SHORT_HANDLERS.value;
const STARTS = HANDLER.byFacts;
const { START } = HANDLER.actions;

export class HandlerPacer {
  private untilUs = Infinity;
  private lastUs = 0;
  /** Handlers that start without a look at the clock. */
  private unseen = 0;

  /**
   * Begins the handlers of a pump. True if the first one starts.
   * @param goesOn the turn of the event loop is that of the pump before
   */
  begins(nowUs: number, goesOn: boolean): boolean {
    if (!goesOn) this.untilUs = nowUs + HANDLERS_US;
    const starts = this.startsAt(nowUs);
    this.unseen = 0;
    return starts;
  }

  /** True if the next handler starts without a look at the clock. */
  startsUnseen(): boolean {
    if (this.unseen === 0) return false;
    this.unseen -= 1;
    return true;
  }

  /** True if the next handler starts at this time, in microseconds: HANDLER. */
  startsAt(nowUs: number): boolean {
    this.unseen = nowUs - this.lastUs < SHORT_HANDLERS_US ? SHORT_HANDLERS - 1 : 0;
    this.lastUs = nowUs;
    return STARTS[nowUs >= this.untilUs ? 1 : 0] === START;
  }
}
