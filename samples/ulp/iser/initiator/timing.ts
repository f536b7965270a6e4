/** Time and chance of what keeps a session: handed in, so that a simulation moves them. */
export interface Timing {
  nowMs(): number;
  /** Runs once after so many milliseconds, unless cancelled by what is returned. */
  after(ms: number, run: () => void): () => void;
  /** 0 up to 1. */
  random(): number;
}

/** Those of this process. */
export const REAL_TIMING: Timing = {
  nowMs: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
  random: Math.random,
};
