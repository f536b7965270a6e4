/** Whether a call of the consumer's is under way, in whatever part of a device. */
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

  /** What a handler calls is not inside the call that is under way when it is wrongly run. */
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
