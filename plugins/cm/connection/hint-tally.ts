/**
 * What the network's hints that a peer does not answer amount to. Any host can forge ICMP, and a
 * link that is down may come up again: one hint proves nothing. They are believed when three have
 * come, each to another message, over a second at least, and the peer has said nothing in between.
 */
import { HINTS_NEEDED, HINTS_SPAN_US } from '../common/timing.js';

export type Hint =
  /** The first one to the message sent last: that message is repeated soon. */
  | 'new'
  /** There has been one to that message. */
  | 'known'
  | 'enough';

export class HintTally {
  count = 0;
  private firstUs = 0;
  /** One has come to the message sent last. */
  private heard = false;

  /** A message has been sent, or sent again: hints from now on are to that one. */
  onSent(): void {
    this.heard = false;
  }

  /** The peer has said something: what was hinted before is not true. */
  forget(): void {
    this.count = 0;
  }

  add(nowUs: number): Hint {
    if (this.heard) return 'known';
    this.heard = true;
    if (this.count === 0) this.firstUs = nowUs;
    this.count++;
    const enough = this.count >= HINTS_NEEDED && nowUs - this.firstUs >= HINTS_SPAN_US;
    return enough ? 'enough' : 'new';
  }

  /** For people. @param what was hinted last */
  verdict(what: string, nowUs: number): string {
    const seconds = ((nowUs - this.firstUs) / 1e6).toFixed(1);
    return `${what}: said of ${this.count} messages in ${seconds} s, and no answer came`;
  }
}
