/**
 * Limits the unanswered requests to one peer; further REQs and DREQs are queued. A peer that gets
 * requests faster than it answers them loses some, and the retries overload it until it answers
 * none. Linux limits the solicited MADs of an agent for the same reason.
 */
import type { Gid } from '../../../core/spi/index.js';

/** A request. `onTurn` is called once, when it may be sent; it then counts until `leave`. */
export interface LimitedRequest {
  readonly remoteGid: Gid;
  onTurn(): void;
}

interface Peer {
  readonly unanswered: Set<LimitedRequest>;
  /** In the order of arrival. */
  readonly queued: Set<LimitedRequest>;
}

export class RequestLimiter {
  private readonly peers = new Map<string, Peer>();
  private isClosed = false;

  /** @param perPeer the most unanswered requests to one peer, at least 1 */
  constructor(private readonly perPeer: number) {}

  /** True if no request is unanswered or queued. */
  get isIdle(): boolean {
    return this.peers.size === 0;
  }

  /** Calls `onTurn`, at once if the limit allows. */
  enter(request: LimitedRequest): void {
    const key = request.remoteGid.join('.');
    let peer = this.peers.get(key);
    if (!peer) this.peers.set(key, (peer = { unanswered: new Set(), queued: new Set() }));
    peer.queued.add(request);
    this.next(peer);
  }

  /** Removes a request, whether it is unanswered, queued or neither. */
  leave(request: LimitedRequest): void {
    const key = request.remoteGid.join('.');
    const peer = this.peers.get(key);
    if (!peer) return;
    peer.queued.delete(request);
    if (peer.unanswered.delete(request)) this.next(peer);
    if (peer.unanswered.size + peer.queued.size === 0) this.peers.delete(key);
  }

  /** Stops calling `onTurn`. */
  close(): void {
    this.isClosed = true;
  }

  private next({ unanswered, queued }: Peer): void {
    for (const request of queued) {
      if (this.isClosed || unanswered.size >= this.perPeer) return;
      queued.delete(request);
      unanswered.add(request);
      request.onTurn();
    }
  }
}
