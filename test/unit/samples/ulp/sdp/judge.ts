/** Lets the second model of the rules judge what a tap is told of two sides. */
import type { TapEvent } from '../../../../../samples/ulp/sdp/index.js';
import { MIDS } from '../../../../../samples/ulp/sdp/wire/index.js';
import { type Name, SdpModel } from '../../../../samples/sdp-model/model.js';

export class Judge {
  readonly model = new SdpModel();
  /** A side was aborted or killed: what is under way then belongs to nothing. */
  private isBroken = false;

  observe(side: Name, phase: 'sent' | 'arrived', event: TapEvent): void {
    if (this.isBroken) return;
    if (event.kind === 'message') {
      this.model.observe(side, { kind: phase, message: event.bytes });
      this.isBroken = event.bytes[0] === MIDS.ABORT_CONN.number;
      return;
    }
    this.isBroken = event.kind === 'killed';
    this.model.observe(side, event);
  }

  /** @returns breaches of the rules; of a life that ended in order, also what was left open */
  verdict(): readonly string[] {
    if (!this.isBroken) this.model.finish();
    return this.model.violations;
  }
}
