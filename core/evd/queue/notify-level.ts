/**
 * How a new event notifies; a higher level includes the lower ones. Every event is queued, whatever
 * its level.
 */
export const Notice = {
  /** No notification: a completion of a request that was posted UNSIGNALLED. */
  NONE: 0,
  /** A completion that is known not to be solicited: does not notify on a SOLICITED EVD. */
  UNSOLICITED: 1,
  /** A completion of a device that does not say: notifies on a SOLICITED EVD if the device does. */
  UNKNOWN: 2,
  /** A solicited or failed completion, and every event that is no completion. */
  ALWAYS: 3,
} as const;
export type Notice = (typeof Notice)[keyof typeof Notice];
