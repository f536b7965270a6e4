/** Messages to a process that does not read them at once: it may be stopped. */
import type { GroupHost, Link } from './group-host.js';
import { emitMessage, type SlotsMessage } from './messages.js';

/** Interval of retries for waiting messages. */
const RETRY_US = 10_000;
/** More than all places of a group with the most addresses. */
const MAX_WAITING = 2048;

interface Waiting {
  readonly bytes: Uint8Array;
  readonly descriptors: readonly number[];
}

export class Outbox {
  private readonly waiting: Waiting[] = [];
  private stopTimer: (() => void) | undefined;

  constructor(
    private readonly host: Pick<GroupHost, 'startTimer'>,
    private readonly link: Link,
  ) {}

  /** Sends in order. A message is lost if too many wait, or after the peer's end. */
  send(message: SlotsMessage, descriptors: readonly number[] = []): void {
    const bytes = emitMessage(message);
    if (this.waiting.length > 0 || !this.trySend(bytes, descriptors)) {
      if (this.waiting.length < MAX_WAITING) this.waiting.push({ bytes, descriptors });
      this.retryLater();
    }
  }

  /** @returns false where the message would have to wait: it is lost */
  sendNow(message: SlotsMessage): boolean {
    return this.waiting.length === 0 && this.trySend(emitMessage(message), []);
  }

  close(): void {
    this.stopTimer?.();
    this.stopTimer = undefined;
    this.waiting.length = 0;
    this.link.close();
  }

  private retryLater(): void {
    this.stopTimer ??= this.host.startTimer(RETRY_US, () => {
      this.stopTimer = undefined;
      let next: Waiting | undefined;
      while ((next = this.waiting[0]) !== undefined && this.trySend(next.bytes, next.descriptors)) {
        this.waiting.shift();
      }
      if (this.waiting.length > 0) this.retryLater();
    });
  }

  private trySend(bytes: Uint8Array, descriptors: readonly number[]): boolean {
    try {
      return this.link.send(bytes, descriptors);
    } catch (error) {
      // Too many descriptors are in flight to processes that do not receive them.
      if ((error as { code?: string }).code === 'ETOOMANYREFS') return false;
      // The peer is gone, and the end of its link says so.
      return true;
    }
  }
}
