/** Tracks whether a call of the consumer is in progress, in any part of a device. */
import type { Report } from './breaches.js';

export class CallDepth {
  private readonly calls: string[] = [];
  report: Report = () => undefined;

  call<T>(what: string, run: () => T): T {
    this.calls.push(what);
    try {
      return run();
    } finally {
      this.calls.pop();
    }
  }

  /**
   * Runs a handler. Its own calls do not count as inside the call in progress, even if it runs
   * there wrongly.
   */
  handler(what: string, run: () => void): void {
    const inside = this.calls.at(-1);
    if (inside !== undefined) this.report('handler-inside-call', `${what} inside ${inside}`);
    const before = this.calls.splice(0);
    try {
      run();
    } finally {
      this.calls.push(...before);
    }
  }
}
