/**
 * Shares of what strangers may have us hold. A stranger has nothing to prove, so what strangers
 * hold is bounded in all, and no address gets it to itself:
 *
 * | held are                                    | in all        | by one address              |
 * | ------------------------------------------- | ------------- | --------------------------- |
 * | connections between REQ and RTU             | `maxHalfOpen` | as many as are left         |
 * | SIDR_REQs that wait for their consumer      | `maxHalfOpen` | as many as are left         |
 * | requests handed out by a listener (Backlog) | `backlog`     | all, until others are       |
 * |                                             |               | turned away                 |
 *
 * The further requests of an address that has its share are dropped, not rejected: it repeats them,
 * and gets in when its earlier ones have come to something.
 */
import { assert } from '../../../core/spi/checks/index.js';
import type { Gid } from '../../../core/spi/index.js';
import { REQ_ANSWERED_US } from '../common/timing.js';

class Holdings {
  total = 0;
  private readonly byAddress = new Map<string, number>();

  of(address: string): number {
    return this.byAddress.get(address) ?? 0;
  }

  add(address: string): void {
    this.total++;
    this.byAddress.set(address, this.of(address) + 1);
  }

  remove(address: string): void {
    assert(this.of(address) > 0, 'a share is given back once', address);
    this.total--;
    const left = this.of(address) - 1;
    if (left > 0) this.byAddress.set(address, left);
    else this.byAddress.delete(address);
  }
}

/**
 * An address may hold as many as are left (the dynamic threshold of shared switch buffers,
 * Choudhury and Hahne 1998): alone it gets half, n of them leave one share of n + 1 free, and one
 * that holds nothing gets in as long as there is any room.
 */
export class Shares {
  private readonly holdings = new Holdings();

  constructor(private readonly limit: number) {}

  /** False when the address has its share; else `giveBack` must follow. */
  take(peer: Gid): boolean {
    const address = peer.join('.');
    const { holdings } = this;
    if (holdings.of(address) >= this.limit - holdings.total) return false;
    holdings.add(address);
    return true;
  }

  giveBack(peer: Gid): void {
    this.holdings.remove(peer.join('.'));
  }
}

/** Addresses that a place is kept for, at most; the one that came first goes first. */
const MAX_TURNED_AWAY = 64;
/** So long after it was turned away last: its REQ comes again within half of that. */
const KEPT_US = REQ_ANSWERED_US;

/**
 * The requests that a listener has handed out and that are not answered. One address alone may fill
 * it, for the consumer may want them all before it answers any. An address that finds it full is
 * remembered: a place that comes free is kept for it, from those that hold more, and from those
 * that came later.
 */
export class Backlog {
  private readonly holdings = new Holdings();
  /** Until when, by address, in the order in which they were turned away first. */
  private readonly turnedAway = new Map<string, number>();

  constructor(private readonly limit: number) {}

  /** False when there is no place for that address; else `giveBack` must follow. */
  take(peer: Gid, nowUs: number): boolean {
    const address = peer.join('.');
    if (this.limit - this.holdings.total <= this.keptFrom(address, nowUs)) {
      this.remember(address, nowUs);
      return false;
    }
    this.turnedAway.delete(address);
    this.holdings.add(address);
    return true;
  }

  giveBack(peer: Gid): void {
    this.holdings.remove(peer.join('.'));
  }

  /** Places that are others'. */
  private keptFrom(address: string, nowUs: number): number {
    const held = this.holdings.of(address);
    let kept = 0;
    let isAhead = true;
    for (const [other, untilUs] of this.turnedAway) {
      if (other === address) isAhead = false;
      else if (nowUs >= untilUs) this.turnedAway.delete(other);
      else if (this.holdings.of(other) < held + (isAhead ? 1 : 0)) kept++;
    }
    return kept;
  }

  private remember(address: string, nowUs: number): void {
    this.turnedAway.set(address, nowUs + KEPT_US);
    if (this.turnedAway.size <= MAX_TURNED_AWAY) return;
    for (const first of this.turnedAway.keys()) {
      this.turnedAway.delete(first);
      return;
    }
  }
}
