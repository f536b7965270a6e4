/**
 * Whose request goes next. A REQ or DREQ waits here while many to the same peer are unanswered: a
 * peer that is asked faster than it answers loses requests, their repetitions are more work for it,
 * and in the end it answers none. (Linux bounds the solicited MADs of an agent for that reason.)
 */
import type { Gid } from '../../../core/spi/index.js';

/** A request that waits for a turn; it is told once, and keeps the turn until `leave`. */
export interface TurnTaker {
  readonly remoteGid: Gid;
  onTurn(): void;
}

interface Peer {
  readonly taking: Set<TurnTaker>;
  /** In the order in which they came. */
  readonly waiting: Set<TurnTaker>;
}

export class Turns {
  private readonly peers = new Map<string, Peer>();
  private isClosed = false;

  /** @param perPeer how many have a turn at a time, at least 1 */
  constructor(private readonly perPeer: number) {}

  /** True when no request has, or waits for, a turn. */
  get isIdle(): boolean {
    return this.peers.size === 0;
  }

  /** Calls `onTurn`, at once if there is room. */
  enter(taker: TurnTaker): void {
    const key = taker.remoteGid.join('.');
    let peer = this.peers.get(key);
    if (!peer) this.peers.set(key, (peer = { taking: new Set(), waiting: new Set() }));
    peer.waiting.add(taker);
    this.next(peer);
  }

  /** The turn, or the wait for it, is over; nothing happens to one that has neither. */
  leave(taker: TurnTaker): void {
    const key = taker.remoteGid.join('.');
    const peer = this.peers.get(key);
    if (!peer) return;
    peer.waiting.delete(taker);
    if (peer.taking.delete(taker)) this.next(peer);
    if (peer.taking.size + peer.waiting.size === 0) this.peers.delete(key);
  }

  /** No request gets a turn any more. */
  close(): void {
    this.isClosed = true;
  }

  private next({ taking, waiting }: Peer): void {
    for (const taker of waiting) {
      if (this.isClosed || taking.size >= this.perPeer) return;
      waiting.delete(taker);
      taking.add(taker);
      taker.onTurn();
    }
  }
}
