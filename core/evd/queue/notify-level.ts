/**
 * How a new event notifies; a higher level includes the lower ones. Every event is queued, whatever
 * its level.
 */
export const Notice = {
  /** Not at all: a completion of a request that was posted UNSIGNALLED. */
  NONE: 0,
  /** A completion that is known not to be solicited: not on a SOLICITED EVD. */
  UNSOLICITED: 1,
  /** A completion of a device that does not say: on a SOLICITED EVD when the device notifies. */
  UNKNOWN: 2,
  /** A solicited or a failed completion, and every event that is no completion. */
  ALWAYS: 3,
} as const;
export type Notice = (typeof Notice)[keyof typeof Notice];
