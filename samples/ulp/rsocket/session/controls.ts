/**
 * Send slots that are kept for messages without a credit: TARGET and CONTROL. The peer keeps as
 * many receives for them as this side has slots.
 */
export const CONTROL_SLOTS = 4;

export class ControlSlots {
  private posted = 0;
  private number = 0;

  get isFree(): boolean {
    return this.posted < CONTROL_SLOTS;
  }

  /** Takes a slot: 0 to 3. Of four in a row none is the same. */
  take(): number {
    this.posted++;
    return this.number++ % CONTROL_SLOTS;
  }

  /** The oldest message that has a slot has left. */
  giveBack(): void {
    this.posted--;
  }
}
