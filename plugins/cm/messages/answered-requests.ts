/**
 * Remembers answered REQs without a connection for as long as their senders may repeat them. A
 * copy gets the same answer: a REJ, or that of the CM to which the request was handed. Without
 * this, the consumer would get a second request from a peer that may be gone, as in Linux.
 */
import type { Gid } from '../../../core/spi/index.js';
import type { TransactionId } from '../common/transaction-id.js';

/** The key of a REQ: a copy has all of these in common with it. */
export interface Asker {
  readonly commId: number;
  readonly guid: bigint;
  readonly gid: Gid;
  readonly transactionId: TransactionId;
}

interface Entry<Answer> {
  readonly answer: Answer;
  /** How long a REQ is remembered after its last copy. */
  readonly forUs: number;
  readonly untilUs: number;
}

export class AnsweredRequests<Answer> {
  /** In the order of their last copies. */
  private readonly entries = new Map<string, Entry<Answer>>();

  /** @param limit above it, the entry whose last copy is oldest is dropped */
  constructor(private readonly limit: number) {}

  get size(): number {
    return this.entries.size;
  }

  /** @param forUs the longest time between two copies */
  add(asker: Asker, answer: Answer, nowUs: number, forUs: number): void {
    this.forgetOldest(nowUs);
    this.put(keyOf(asker), { answer, forUs, untilUs: nowUs + forUs });
  }

  /** The answer to a copy; undefined for a new request. */
  find(asker: Asker, nowUs: number): Answer | undefined {
    const key = keyOf(asker);
    const entry = this.entries.get(key);
    if (!entry) return undefined;
    this.entries.delete(key);
    if (nowUs >= entry.untilUs) return undefined;
    this.put(key, { ...entry, untilUs: nowUs + entry.forUs });
    return entry.answer;
  }

  private put(key: string, entry: Entry<Answer>): void {
    this.entries.delete(key);
    this.entries.set(key, entry);
  }

  /** Drops expired entries, and the oldest one if there are too many. */
  private forgetOldest(nowUs: number): void {
    for (const [key, { untilUs }] of this.entries) {
      if (nowUs < untilUs && this.entries.size < this.limit) return;
      this.entries.delete(key);
    }
  }
}

function keyOf({ commId, guid, gid, transactionId }: Asker): string {
  return `${commId}:${guid}:${gid.join('.')}:${transactionId}`;
}
