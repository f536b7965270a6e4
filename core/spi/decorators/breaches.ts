/** Breaches of the provider contract (docs/spi.md) that can be detected from outside. */

/** The rules, each with its demand. */
export const BREACHES = {
  'handler-inside-call': 'handlers run in the pump, never inside a call of the consumer',
  'completion-unknown': 'a completion is of a request that is outstanding, and comes once',
  'completion-order': 'requests of a queue complete in the order in which they were posted',
  'completion-lost': 'a completion is lost only with CQ_ERR on its completion queue',
  'completion-unsignalled': 'an unsignalled send that succeeds does not complete',
  'completion-cookie': 'a completion has the cookie of its request',
  'completion-context': 'a completion has the context number of its queue pair',
  'success-after-failure': 'behind a failed request everything of its queue is flushed',
  'completion-overrun': 'a completion never takes the place of one that has not been read',
  'notify-unarmed': 'arming is one-shot: a notification follows an arm, and one only',
  'ring-not-ended': 'the rings of a queue pair end with it',
  'connection-events': 'a connection is established once and ends once; only timewait-exit follows',
  'mad-send-result': 'each MAD that is sent is reported once, before its agent has unregistered',
} as const satisfies Readonly<Record<string, string>>;

export type BreachRule = keyof typeof BREACHES;

/** An observed breach. */
export interface Breach {
  readonly rule: BreachRule;
  /** Rule, device, object and observation, in a sentence. */
  readonly message: string;
  /** `name` of the device. */
  readonly device: string;
}

export type Report = (rule: BreachRule, seen: string) => void;
