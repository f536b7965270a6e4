/**
 * Limits on the state that unauthenticated peers make us hold: in all, and by address.
 *
 * | state                                     | limit in all  | limit of one address              |
 * | ----------------------------------------- | ------------- | --------------------------------- |
 * | connections between REQ and RTU           | `maxHalfOpen` | as many as are left               |
 * | SIDR_REQs that the consumer must answer   | `maxHalfOpen` | as many as are left               |
 * | requests that a listener has handed out   | `backlog`     | all, until others are turned away |
 * | (Backlog)                                 |               |                                   |
 *
 * Requests of an address above its share are dropped, not rejected. The address repeats them, and
 * is admitted when its earlier ones are done.
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
 * Limits an address to as many places as are free: the dynamic threshold of shared switch buffers
 * (Choudhury and Hahne 1998). One address alone gets half. With n addresses, one share of n + 1
 * stays free, so an address that holds nothing is admitted while any place is free.
 */
export class Shares {
  private readonly holdings = new Holdings();

  constructor(private readonly limit: number) {}

  /** False if the address has its share; else the caller must call `giveBack`. */
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

/** The most addresses that a place is reserved for. Above it, the oldest is dropped. */
const MAX_TURNED_AWAY = 64;
/** How long a place is reserved after the last refusal: twice the retry interval of a REQ. */
const KEPT_US = REQ_ANSWERED_US;

/**
 * Unanswered requests of a listener. One address alone may fill it, since a consumer may want all
 * of its requests before it answers any. An address that is turned away gets a reservation for the
 * next free place, ahead of addresses that hold more and of those that came later.
 */
export class Backlog {
  private readonly holdings = new Holdings();
  /** When each reservation ends, by address, in order of the first refusal. */
  private readonly turnedAway = new Map<string, number>();

  constructor(private readonly limit: number) {}

  /** False if there is no place for the address; else the caller must call `giveBack`. */
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

  /** HalfOpenLimit that are reserved for other addresses. */
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
