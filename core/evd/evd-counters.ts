/** Counters of an event dispatcher: those of DAT_EVD_COUNTERS that have an event here. */
export const EVD_COUNTERS = [
  /** `wait` calls; waits that had to block, including those of iterations. */
  'wait',
  'waitBlocked',
  /** Notifications of the completion queue. */
  'dtoNotify',
  /** Connection events, and software events of every kind, posted. */
  'connectionNotify',
  'posted',
  /** `dequeue` and `dequeueInto` calls, and whether they found anything. */
  'dequeue',
  'dequeueFound',
  'dequeueNotFound',
  /** Events lost because the queue was full. */
  'lost',
] as const;

export type EvdCounterName = (typeof EVD_COUNTERS)[number];
/** Counts, exact up to 2^53. */
export type EvdCounterValues = Readonly<Record<EvdCounterName, number>>;

/** Indices for the data path. */
export const EVD_COUNTER = {
  WAIT: EVD_COUNTERS.indexOf('wait'),
  WAIT_BLOCKED: EVD_COUNTERS.indexOf('waitBlocked'),
  DTO_NOTIFY: EVD_COUNTERS.indexOf('dtoNotify'),
  DEQUEUE: EVD_COUNTERS.indexOf('dequeue'),
  FOUND: EVD_COUNTERS.indexOf('dequeueFound'),
  NOT_FOUND: EVD_COUNTERS.indexOf('dequeueNotFound'),
} as const;
