/**
 * High watermarks of the receives that an endpoint holds (dat_ep_set_watermark). The soft one tells
 * once per setting; the hard one breaks the connection.
 */
import { isInteger, kindOf } from '../../spi/checks/index.js';

/** What passing a mark leads to. */
export interface WatermarkActions {
  onSoft(count: number, mark: number): void;
  onHard(count: number, mark: number): void;
}

export class EpWatermarks {
  /** @param soft, hard Infinity when it is not armed */
  constructor(
    public soft: number,
    readonly hard: number,
    private readonly actions: WatermarkActions,
  ) {}

  /** The endpoint holds that many receives now. */
  look(count: number): void {
    if (count > this.soft) {
      const mark = this.soft;
      this.soft = Infinity;
      this.actions.onSoft(count, mark);
    }
    if (count > this.hard) this.actions.onHard(count, this.hard);
  }
}

/** A count, or Infinity: no mark (DAT_WATERMARK_INFINITE). */
export const WATERMARK = kindOf<number>(
  'an integer from 0 on, or Infinity',
  (value) => value === Infinity || isInteger(value, 0, Infinity),
);
