/**
 * Clock, timers and randomness for keeping a session, passed in so that a simulation controls them.
 */
export interface Timing {
  nowMs(): number;
  /** Runs once after so many milliseconds. @returns a function that cancels it */
  after(ms: number, run: () => void): () => void;
  /** 0 up to 1, 1 excluded. */
  random(): number;
}

/** Clock, timers and randomness of this process. */
export const REAL_TIMING: Timing = {
  nowMs: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
  random: Math.random,
};
