/**
 * For mocha's `--require`: the bounds of tests and hooks, which only catch what hangs, know the
 * machine. `timeout: 60000` and `this.timeout(ms)` say what is enough on an idle one; whether it
 * has been enough is asked when it is over, so that a load that comes later counts too.
 */
import Mocha from 'mocha';
import { patience } from './patience.js';

/** What mocha's Runnable has, and its types have not. */
interface Bounded {
  timeout: (this: Bounded, ms?: number | string) => number;
  clearTimeout(): void;
  timer: NodeJS.Timeout;
  timedOut: boolean;
  callback(error: Error): void;
  _timeoutError(ms: number): Error;
}

/** That a timer can have. */
const LONGEST_MS = 2 ** 31 - 1;

// Behaviours of the conformance suite wait with bounds of their own.
process.env['DAPL_TEST_PATIENCE_MS'] ??= String(patience(40_000));

const runnable = Mocha.Runnable.prototype as unknown as Bounded & { resetTimeout(): void };
const stated = runnable.timeout;

runnable.timeout = function (this: Bounded, ...given: [ms?: number | string]) {
  return given.length === 0 ? patience(stated.call(this)) : stated.apply(this, given);
};

runnable.resetTimeout = function (this: Bounded) {
  this.clearTimeout();
  const startMs = performance.now();
  const look = (): void => {
    const mostMs = this.timeout();
    // 0 is for ever.
    if (mostMs === 0) return;
    const leftMs = startMs + mostMs - performance.now();
    if (leftMs > 0) {
      this.timer = setTimeout(look, leftMs);
      return;
    }
    this.callback(this._timeoutError(mostMs));
    this.timedOut = true;
  };
  this.timer = setTimeout(look, this.timeout() || LONGEST_MS);
};
