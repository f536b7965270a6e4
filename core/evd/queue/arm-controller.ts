/**
 * Decides when to arm a completion queue. The device's notification is one-shot, edge-triggered,
 * and cannot be cancelled. So a queue is armed only while its next event is wanted, and never twice
 * for the same wish. After arming, the caller looks once more (drain, arm, look).
 */
import type { CompletionQueue } from '../../spi/index.js';
import type { EvdRecord } from '../evd-record.js';

/** Notification wanted for the next completion; a higher number includes the lower ones. */
export const Want = { NOTHING: 0, SOLICITED_OR_FAILED: 1, NEXT: 2 } as const;
export type Want = (typeof Want)[keyof typeof Want];

export class ArmController {
  /** The notification that the device is armed for. */
  armed: Want = Want.NOTHING;
  /** Notifications that came too late to be wanted. */
  stale = 0;
  private failing = false;

  constructor(
    private readonly cq: Pick<CompletionQueue, 'arm'>,
    private readonly record: EvdRecord,
  ) {}

  /** Arms if needed. Returns true when the caller must look once more. */
  request(want: Want): boolean {
    if (want <= this.armed) return false;
    try {
      this.cq.arm(want === Want.SOLICITED_OR_FAILED);
    } catch (error) {
      if (!this.failing) this.record.unarmable(error);
      // Completions from before the attempt are still to be read. Looking again cannot loop for
      // ever: only new completions are a reason to come back.
      this.failing = true;
      return true;
    }
    this.failing = false;
    this.armed = want;
    return true;
  }

  /** The device has notified. Returns false for a stale notification, which is absorbed. */
  fired(want: Want): boolean {
    this.armed = Want.NOTHING;
    if (want !== Want.NOTHING) return true;
    this.stale++;
    return false;
  }

  /** The queue has been replaced: it is not known to be armed. */
  forget(): void {
    this.armed = Want.NOTHING;
  }
}
