/** What a window is bound to: the bind that opened it, until it is closed. */
import type { EpQueues } from './queues.js';
import type { Lmr } from '../memory/lmr.js';
import type { LmrSegment } from '../memory/segment.js';

export class RmrBinding {
  private readonly close: (() => void) | undefined;
  private open = true;

  readonly lmr: Lmr;
  readonly offsetBytes: number;
  readonly lengthBytes: number;
  /** The peer has invalidated the key, perhaps before the completion of the bind. */
  isInvalidated = false;

  /** @param queues that the bind was posted on: an endpoint's window ends with them */
  constructor(
    { lmr, offsetBytes, lengthBytes }: LmrSegment,
    readonly privileges: number,
    readonly zeroBased: boolean,
    readonly rmrContext: number,
    readonly queues: EpQueues,
  ) {
    this.lmr = lmr;
    this.offsetBytes = offsetBytes;
    this.lengthBytes = lengthBytes;
    lmr.boundRmrs++;
    if (!zeroBased) {
      this.close = lmr.pz.rmrContexts.open(rmrContext, lmr, offsetBytes, lengthBytes);
    }
  }

  /** Address of the first byte as a peer names it. */
  get address(): bigint {
    return this.zeroBased ? 0n : this.lmr.address + BigInt(this.offsetBytes);
  }

  /** The region is free of it. */
  end(): void {
    if (!this.open) return;
    this.open = false;
    this.lmr.boundRmrs--;
    this.close?.();
  }
}
