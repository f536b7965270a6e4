/**
 * Rate limits for incoming CM messages. Parsing and answering a message costs 40 to 60 us, and
 * nothing is known about its sender. So a message is judged before that by its bytes and its
 * source address alone, in less than a microsecond and without an allocation.
 *
 * | message                                          | verdict                             |
 * | ------------------------------------------------ | ----------------------------------- |
 * | more than 16 copies of one message within 200 ms | dropped: the answer is in flight    |
 * | from one address                                 |                                     |
 * | its address is above its rate                    | dropped                             |
 * | half of the overall rate is used, and half of    | dropped: the rest is reserved for   |
 * | the rate of its address                          | addresses that have been quiet      |
 * | any other                                        | taken, and charged to its address   |
 *
 * A message that advances a connection is refunded. So a peer that connects, uses its connections
 * and closes them has no limit; only messages that lead to nothing count.
 */
import type { Gid } from '../../../core/spi/index.js';

export interface MessageRate {
  readonly perSecond: number;
  /** Messages at once. */
  readonly burst: number;
}

export interface AdmissionLimits {
  readonly ofPeer: MessageRate;
  readonly inAll: MessageRate;
}

export type Verdict = 'taken' | 'repeated' | 'overRate';

/** At most the shortest retry interval: 200 ms for our DREQ; Linux waits seconds. */
const REPEAT_US = 200_000;
/** A faulty network may duplicate a message, but not this often. */
const MAX_COPIES = 16;
const REPEAT_SLOTS = 1024;
const GID_BYTES = 16;
/** A set-associative cache of addresses. An address without charges needs no entry. */
const SETS = 256;
const WAYS = 4;
const FNV_PRIME = 0x01000193;

export class Admission {
  private readonly addresses = new Uint8Array(SETS * WAYS * GID_BYTES);
  /** By entry: when all charges of the address have expired, in microseconds. */
  private readonly paidUntilUs = new Float64Array(SETS * WAYS);
  private readonly digests = new Uint32Array(REPEAT_SLOTS);
  private readonly copies = new Uint32Array(REPEAT_SLOTS);
  /** When the first of these copies arrived. */
  private readonly seenUs = new Float64Array(REPEAT_SLOTS);
  private allPaidUntilUs = 0;
  private readonly peerCostUs: number;
  private readonly peerBurstUs: number;
  private readonly costUs: number;
  private readonly burstUs: number;

  /** @param seed random, so that a stranger cannot choose the slot of an address or a message */
  constructor(
    { ofPeer, inAll }: AdmissionLimits,
    private readonly seed: number,
  ) {
    this.peerCostUs = 1e6 / ofPeer.perSecond;
    this.peerBurstUs = ofPeer.burst * this.peerCostUs;
    this.costUs = 1e6 / inAll.perSecond;
    this.burstUs = inAll.burst * this.costUs;
  }

  judge(mad: Uint8Array, peer: Gid, nowUs: number): Verdict {
    const address = digest(this.seed, peer);
    if (this.isRepeated(digest(address, mad), nowUs)) return 'repeated';
    const entry = this.entryOf(peer, address, nowUs);
    const ofPeerUs = Math.max(this.paidUntilUs[entry]! - nowUs, 0) + this.peerCostUs;
    const inAllUs = Math.max(this.allPaidUntilUs - nowUs, 0) + this.costUs;
    const isQuiet = 2 * ofPeerUs <= this.peerBurstUs;
    const allowedUs = isQuiet ? this.burstUs : this.burstUs / 2;
    if (exceeds(ofPeerUs, this.peerBurstUs) || exceeds(inAllUs, allowedUs)) return 'overRate';
    this.paidUntilUs[entry] = nowUs + ofPeerUs;
    this.allPaidUntilUs = nowUs + inAllUs;
    return 'taken';
  }

  /** Refunds messages that advanced a connection. */
  payBack(peer: Gid, messages: number, nowUs: number): void {
    const entry = this.entryOf(peer, digest(this.seed, peer), nowUs);
    this.paidUntilUs[entry]! -= messages * this.peerCostUs;
    this.allPaidUntilUs -= messages * this.costUs;
  }

  private isRepeated(message: number, nowUs: number): boolean {
    const slot = message % REPEAT_SLOTS;
    if (this.digests[slot] !== message || nowUs - this.seenUs[slot]! >= REPEAT_US) {
      this.digests[slot] = message;
      this.seenUs[slot] = nowUs;
      this.copies[slot] = 0;
    }
    this.copies[slot]! += 1;
    return this.copies[slot]! > MAX_COPIES;
  }

  /** Replaces an entry without charges. If its set has none, two addresses share a rate. */
  private entryOf(peer: Gid, address: number, nowUs: number): number {
    const first = (address % SETS) * WAYS;
    let free = first + ((address >>> 16) % WAYS);
    for (let entry = first; entry < first + WAYS; entry++) {
      if (this.isAt(entry, peer)) return entry;
      if (this.paidUntilUs[entry]! <= nowUs) free = entry;
    }
    if (this.paidUntilUs[free]! <= nowUs) this.addresses.set(peer, free * GID_BYTES);
    return free;
  }

  private isAt(entry: number, peer: Gid): boolean {
    const at = entry * GID_BYTES;
    for (let i = GID_BYTES - 1; i >= 0; i--) {
      if (this.addresses[at + i] !== peer[i]) return false;
    }
    return true;
  }
}

/** Allows for rounding: sums of fractions are not exact. */
function exceeds(us: number, limitUs: number): boolean {
  return us > limitUs + 0.01;
}

/** The 32-bit FNV-1a hash. */
function digest(start: number, bytes: Uint8Array): number {
  let hash = start;
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ bytes[i]!, FNV_PRIME);
  return (hash ^ (hash >>> 15)) >>> 0;
}
