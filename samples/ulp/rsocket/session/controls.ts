/**
 * Send slots that are reserved for messages without a credit: TARGET and CONTROL. The peer keeps as
 * many receives for them as this side has slots.
 */
export const CONTROL_SLOTS = 4;

export class ControlSlots {
  private posted = 0;
  private number = 0;

  get isFree(): boolean {
    return this.posted < CONTROL_SLOTS;
  }

  /** Takes a slot: 0 to 3. Any four in a row are different. */
  take(): number {
    this.posted++;
    return this.number++ % CONTROL_SLOTS;
  }

  /** The oldest message that has a slot was sent. */
  giveBack(): void {
    this.posted--;
  }
}
