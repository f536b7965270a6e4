/**
 * REQs that are answered and have no connection here, for as long as their senders may repeat them:
 * a copy that is sent before the answer has come, or because it was lost, gets the same answer. To
 * the consumer it would be a second request, of a peer that may be gone already. (Linux makes one
 * of it.) The answer is a REJ, or that of the CM to which the request has been handed.
 */
import type { Gid } from '../../../core/spi/index.js';
import type { TransactionId } from '../common/transaction-id.js';

/** What a copy has in common with the REQ: another id or transaction is another request. */
export interface Asker {
  readonly commId: number;
  readonly guid: bigint;
  readonly gid: Gid;
  readonly transactionId: TransactionId;
}

interface Entry<Answer> {
  readonly answer: Answer;
  /** How long after its last copy a REQ is remembered. */
  readonly forUs: number;
  readonly untilUs: number;
}

export class AnsweredRequests<Answer> {
  /** In the order in which they came last. */
  private readonly entries = new Map<string, Entry<Answer>>();

  /** @param limit when there are more, the one that came longest ago is forgotten */
  constructor(private readonly limit: number) {}

  get size(): number {
    return this.entries.size;
  }

  /** @param forUs a copy comes so long after the one before it, at most */
  add(asker: Asker, answer: Answer, nowUs: number, forUs: number): void {
    this.forgetOldest(nowUs);
    this.put(keyOf(asker), { answer, forUs, untilUs: nowUs + forUs });
  }

  /** The answer to a copy; undefined for a request that is new. */
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

  /** What no sender asks for any more, from the oldest on; and that, if there is no room. */
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
