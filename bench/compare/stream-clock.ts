/** The times of a stream: what counts begins after a lead-in, and posting ends with the time. */
import { performance } from 'node:perf_hooks';
import { type Count, LEAD_IN } from './end.js';

/** Small messages between two looks at the clock. */
export const LOOKS = 64;

export class StreamClock {
  private readonly startMs = performance.now();
  private sinceMs = this.startMs;
  private before = 0;
  private counting = false;

  constructor(private readonly seconds: number) {}

  /** Whether the time is up, and something counts; `messages` are complete by now. */
  isOver(messages: number): boolean {
    const nowMs = performance.now();
    const elapsed = (nowMs - this.startMs) / 1000;
    if (!this.counting && elapsed >= this.seconds * LEAD_IN) {
      this.counting = true;
      this.before = messages;
      this.sinceMs = nowMs;
    }
    return elapsed >= this.seconds && messages > this.before;
  }

  /** All of them are complete. */
  count(messages: number): Count {
    const seconds = (performance.now() - this.sinceMs) / 1000;
    return { messages, counted: messages - this.before, seconds };
  }
}
