/**
 * REQs that have been rejected, for as long as their senders may repeat them: a copy that is sent
 * before the REJ has come, or because it was lost, is answered by the same REJ. To the consumer it
 * would be a second request, of a peer that may be gone already. (Linux makes one of it.)
 */
import type { Gid } from '../../../core/spi/index.js';
import type { TransactionId } from '../common/transaction-id.js';
import type { CmRej } from '../wire/rej.js';

/** What a copy has in common with the REQ: another id or transaction is another request. */
export interface Asker {
  readonly commId: number;
  readonly guid: bigint;
  readonly gid: Gid;
  readonly transactionId: TransactionId;
}

interface Rejection {
  readonly rej: CmRej;
  /** How long after its last copy a REQ is remembered. */
  readonly forUs: number;
  readonly untilUs: number;
}

export class RejectedRequests {
  /** In the order in which they came last. */
  private readonly rejections = new Map<string, Rejection>();

  /** @param limit when there are more, the one that came longest ago is forgotten */
  constructor(private readonly limit: number) {}

  get size(): number {
    return this.rejections.size;
  }

  /** @param forUs a copy comes so long after the one before it, at most */
  add(asker: Asker, rej: CmRej, nowUs: number, forUs: number): void {
    this.forgetOldest(nowUs);
    this.put(keyOf(asker), { rej, forUs, untilUs: nowUs + forUs });
  }

  /** The answer to a copy; undefined for a request that is new. */
  find(asker: Asker, nowUs: number): CmRej | undefined {
    const key = keyOf(asker);
    const rejection = this.rejections.get(key);
    if (!rejection) return undefined;
    this.rejections.delete(key);
    if (nowUs >= rejection.untilUs) return undefined;
    this.put(key, { ...rejection, untilUs: nowUs + rejection.forUs });
    return rejection.rej;
  }

  private put(key: string, rejection: Rejection): void {
    this.rejections.delete(key);
    this.rejections.set(key, rejection);
  }

  /** What no sender asks for any more, from the oldest on; and that, if there is no room. */
  private forgetOldest(nowUs: number): void {
    for (const [key, { untilUs }] of this.rejections) {
      if (nowUs < untilUs && this.rejections.size < this.limit) return;
      this.rejections.delete(key);
    }
  }
}

function keyOf({ commId, guid, gid, transactionId }: Asker): string {
  return `${commId}:${guid}:${gid.join('.')}:${transactionId}`;
}
