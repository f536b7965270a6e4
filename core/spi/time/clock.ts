/**
 * Injected time and randomness: core, the modules and the software HCA never read a clock or make
 * random numbers themselves.
 */

/** Monotonic time in microseconds from an arbitrary origin, possibly fractional. */
export interface Clock {
  now(): number;
}

/** A source of random numbers; the real one is cryptographic, since rkeys come from it. */
export interface Random {
  /** Uniform in 0 to 2^32 - 1. */
  u32(): number;
}

/**
 * Runs a task once, after the present call stack has unwound: at the end of the current pump of the
 * driver, or of the next one, in the order of the calls. Consumer code (upcalls, subscribers,
 * promise settlement) starts only from here.
 */
export interface Scheduler {
  defer(task: () => void): void;
  /**
   * True if another handler may start in this turn of the event loop: false once handlers have used
   * 4 ms of it. Ask between two handlers of one task, and defer the rest.
   */
  mayStart(): boolean;
}

/**
 * Counts reasons to keep the process alive (open service points, waiters, subscriptions, enabled
 * upcalls, connecting endpoints). Each `retain` is undone by exactly one `release`.
 */
export interface ProcessHold {
  retain(): void;
  release(): void;
}
