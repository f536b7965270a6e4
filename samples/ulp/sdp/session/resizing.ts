/**
 * Receives of this side are enlarged when the peer asks (ChRcvBuf). The answer says that every
 * receive that is posted has the new size, so it waits until those that were posted before have
 * been used. They are not made smaller: messages for the old size may be on their way.
 */
import { expect } from './protocol-error.js';

export class Resizing {
  private smaller = 0;
  private isPending = false;

  private answerBytes: number;

  constructor(
    private currentBytes: number,
    private readonly maxBytes: number,
  ) {
    this.answerBytes = currentBytes;
  }

  /** Bytes of a receive that is posted now. */
  get bytes(): number {
    return this.currentBytes;
  }

  /** What every receive that is posted has. */
  get answer(): number {
    return this.answerBytes;
  }

  /** The answer can be given. */
  get isDue(): boolean {
    return this.isPending && this.smaller === 0;
  }

  /** @param posted receives that are posted */
  onAsked(bytes: number, posted: number): void {
    expect(!this.isPending, () => 'ChRcvBuf, and one has not been answered');
    expect(bytes > 0, () => 'ChRcvBuf of 0 bytes');
    this.isPending = true;
    const target = Math.max(this.currentBytes, Math.min(bytes, this.maxBytes));
    this.smaller = target === this.currentBytes ? 0 : posted;
    this.currentBytes = target;
  }

  /** A message has taken a receive: the oldest. */
  onReceived(): void {
    if (this.smaller === 0) return;
    this.smaller--;
    if (this.smaller === 0) this.answerBytes = this.currentBytes;
  }

  /** The peer sends no more: the smaller receives stay posted, and the answer says so. */
  onEnded(): void {
    this.smaller = 0;
  }

  onAnswered(): void {
    this.isPending = false;
  }
}
