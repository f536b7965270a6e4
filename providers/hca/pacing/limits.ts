/** The constants of the pacing, each with the measurement that chose it, or the bound it keeps. */

export interface Limit {
  readonly value: number;
  readonly unit: string;
  readonly why: string;
}

export const LIMITS = {
  EAGER_REQUESTS: {
    value: 32,
    unit: 'requests',
    why: 'a train costs 6 to 8 us at either end: much smaller ones cost more than they gain',
  },
  MAX_BURSTS: {
    value: 2,
    unit: 'bursts',
    why: 'a peer may ask for a READ of 2 GiB, and others must not wait for the end of it',
  },
  PACKETS_AHEAD: {
    value: 4,
    unit: 'packets',
    why: "an ACK and an atomic result or two; no request waits for the end of a READ's answer",
  },
  PATIENT_PACKETS: {
    value: 16,
    unit: 'packets',
    why: 'the window of a sender of more waits for the answer',
  },
  PATIENT_PACKETS_AHEAD: {
    value: 1,
    unit: 'packets',
    why: 'a handler may answer a lone message in the system call of its ACK',
  },
  MAX_ROUNDS: {
    value: 16,
    unit: 'rounds',
    why: 'handlers and the event loop get their turn under load',
  },
  PATIENT_PUMPS: {
    value: 3,
    unit: 'pumps',
    why: 'more than there are in a turn of the event loop; without, RNR NAKs of 20 ms',
  },
  MAX_PUMPS_A_TURN: {
    value: 32,
    unit: 'pumps',
    why: 'each may bring what wakes the next: timers and sockets would never be served',
  },
  HANDLERS_US: {
    value: 4000,
    unit: 'us',
    why: 'a handler may take a millisecond, and timers of the application wait for all of a turn',
  },
  SHORT_HANDLERS_US: {
    value: 100,
    unit: 'us',
    why: 'a reading of the clock takes 50 ns, as much as half of a handler that does nothing',
  },
  SHORT_HANDLERS: {
    value: 4,
    unit: 'handlers',
    why: 'a quarter of the readings; so many may turn out to be long before it is seen',
  },
  TOLD_OF_ONE_MESSAGE: {
    value: 2,
    unit: 'completions',
    why: 'of one message and an ACK; more may be answered one by one, in a microtask each',
  },
  ADAPTIVE_POLL_US: {
    value: 200,
    unit: 'us',
    why: 'several times the 24 to 30 us that a wake-up takes in a VM',
  },
  ADAPTIVE_WAIT_US: {
    value: 20_000,
    unit: 'us',
    why: 'a longer wait is hardly one for the port; time slices of 3 to 10 ms must count',
  },
  POLL_TRIAL_US: {
    value: 20_000,
    unit: 'us',
    why: 'several time slices of the system: one that is taken from us shows',
  },
  POLL_TRIAL_COMPLETIONS: {
    value: 32,
    unit: 'completions',
    why: 'a few late ones do not decide',
  },
  LEAST_POLL_TRIAL: {
    value: 12,
    unit: 'windows',
    why: 'meanwhile the system moves a program to a free core, and V8 compiles',
  },
  MOST_POLL_TRIAL: {
    value: 24,
    unit: 'windows',
    why: 'half a second, and only while each window is faster than the one before',
  },
  LEAST_POLL_PERIOD: {
    value: 4,
    unit: 'windows',
    why: 'three windows of the better way; it doubles while trials say the same',
  },
  MOST_POLL_PERIOD: {
    value: 1024,
    unit: 'windows',
    why: '20 s: trials are 1 % of the time then',
  },
  POLLING_CORES: {
    value: 2,
    unit: 'cores',
    why: 'one for each side: two that poll beside a busy process take 5 times as long as asleep',
  },
  CORES_WINDOWS: {
    value: 16,
    unit: 'windows',
    why: 'the peer runs at every second moment that is looked at; a neighbour shows within 0.3 s',
  },
  POLL_FORGET_PERCENT: {
    value: 110,
    unit: '%',
    why: 'what sleeping took in the best window counts for less after each further one',
  },
  POLL_GAIN_PERCENT: {
    value: 85,
    unit: '%',
    why: 'the time of a completion varies by 10 %, and to sleep leaves the core to others',
  },
  POLL_SLICE_US: {
    value: 60,
    unit: 'us',
    why: 'a turn of the event loop costs as much as five looks at the port',
  },
  IDLE_SLICE_US: {
    value: 20,
    unit: 'us',
    why: 'two to three times half a round trip of 8 B',
  },
  SPIN_US: {
    value: 200,
    unit: 'us',
    why: 'as ADAPTIVE_POLL_US: several times what a wake-up takes',
  },
  REST_US: {
    value: 200,
    unit: 'us',
    why: 'as long as was looked: a loop of so many looks between two turns takes twice the time',
  },
  BULK_BYTES: {
    value: 32_768,
    unit: 'bytes',
    why: 'to send less takes less time than to be woken',
  },
  BULK_GAP_US: {
    value: 200,
    unit: 'us',
    why: 'a chunk of 448 KiB is taken in within 60 to 150 us',
  },
} as const satisfies Readonly<Record<string, Limit>>;

export type LimitName = keyof typeof LIMITS;
