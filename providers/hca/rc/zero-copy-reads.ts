/**
 * Sends READ responses from the region itself, without a copy. A READ is never acknowledged. Its
 * response is safe to forget once the requester's window has moved past it, or once a younger READ
 * has taken its place. If the region goes earlier, its bytes are copied (`keep`). If its owner
 * writes to it meanwhile, the packet fails its ICRC and is requested again; then responses are
 * copied for a while.
 */
import { QpState } from '../../../core/spi/index.js';
import type { ReadCopy } from '../memory/read-copies.js';
import type { Region } from '../memory/region.js';
import type { RcQueuePair } from './queue-pair.js';
import { RES, RESOURCE, type ResponderResources } from './responder-resources.js';
import { PSN_MASK } from '../wire/psn.js';

/** The most that a queue pair of ours ever has outstanding, and that a page ring holds. */
const OUTSTANDING_BYTES = 4 << 20;
/**
 * Answers that are copied after one was asked for again: once for impatience, or for memory that
 * seldom changes, and up to so many where what stays in place is hit again and again.
 */
const LEAST_COPIED = 64;
const MOST_COPIED = 4096;
/** No answer of this READ has been left in place. */
const NONE = -1;

export interface AnswerCopy extends ReadCopy {
  /** First packet of the READ that is in it, and one after the last. */
  readonly start: number;
  readonly end: number;
}

export class RcZeroCopyReads {
  /** By resource: where its answers were left, and the offset there of the READ's first byte. */
  private readonly regions: (Region | undefined)[];
  private readonly offsets: number[];
  private readonly copies: (AnswerCopy | undefined)[];
  /** How many were, or are to be, the last time; and how many of them are to come. */
  private copied = 0;
  private copiesLeft = 0;
  /** Answers left in place since the last copied one. */
  private stayed = 0;

  constructor(
    private readonly qp: RcQueuePair,
    private readonly resources: ResponderResources,
  ) {
    const { count } = resources;
    this.regions = new Array<Region | undefined>(count).fill(undefined);
    this.offsets = new Array<number>(count).fill(NONE);
    this.copies = new Array<AnswerCopy | undefined>(count).fill(undefined);
  }

  /**
   * Decides whether the next response of a resource may be sent straight from the region. Counts
   * it if so.
   * @param offset in bytes, of the READ's first byte in the region
   */
  mayStay(resource: number, region: Region, offset: number): boolean {
    // A queue pair in ERR is not asked again.
    if (this.qp.state === QpState.ERR) return false;
    if (this.copiesLeft > 0) {
      this.copiesLeft -= 1;
      return false;
    }
    this.stayed += 1;
    this.offsets[resource] = offset;
    if (this.regions[resource] !== region) this.moveTo(resource, region);
    return true;
  }

  /** Notes a repeated request: responses sent from the region may have been lost by that. */
  onRepeated(): void {
    if (this.copiesLeft === 0) {
      const often = this.stayed < 2 * this.copied;
      this.copied = often ? Math.min(2 * this.copied, MOST_COPIED) : LEAST_COPIED;
    }
    this.copiesLeft = this.copied;
    this.stayed = 0;
  }

  /** The resource serves another request: the peer has the answer of the last one. */
  reuse(resource: number): void {
    this.offsets[resource] = NONE;
    this.dropCopy(resource);
  }

  /** The copy that packets of a resource must be answered from. */
  copyOf(resource: number): AnswerCopy | undefined {
    const copy = this.copies[resource];
    if (copy === undefined || this.qp.hca.readCopies.has(copy)) return copy;
    this.copies[resource] = undefined;
    return undefined;
  }

  end(): void {
    for (let resource = 0; resource < this.regions.length; resource++) {
      this.reuse(resource);
      this.moveTo(resource, undefined);
    }
  }

  // --- the memory goes --------------------------------------------------------------------------

  keep(region: Region, key: number): void {
    if (this.qp.state === QpState.ERR || !region.isThere) return;
    const { words } = this.resources;
    for (let resource = 0; resource < this.regions.length; resource++) {
      const at = this.resources.wordOf(resource);
      const concerned = this.regions[resource] === region && this.offsets[resource] !== NONE;
      if (concerned && words[at + RES.RKEY] === key) this.keepAnswers(resource, at, region);
    }
  }

  forget(region: Region): void {
    this.regions.forEach((one, resource) => {
      if (one === region) {
        this.regions[resource] = undefined;
        this.offsets[resource] = NONE;
      }
    });
  }

  private keepAnswers(resource: number, at: number, region: Region): void {
    const { words } = this.resources;
    const { hca, mtuBytes, responder } = this.qp;
    if (words[at + RES.KIND] !== RESOURCE.READ) return;
    const end = words[at + (words[at + RES.ANSWERED] === 1 ? RES.COUNT : RES.NEXT)]!;
    const age = (responder.ePsn - words[at + RES.FIRST_PSN]!) & PSN_MASK;
    const start = Math.max(0, age - Math.ceil(OUTSTANDING_BYTES / mtuBytes));
    if (start >= end) return;
    const from = start * mtuBytes;
    const offset = this.offsets[resource]! + from;
    const length = Math.min(end * mtuBytes, words[at + RES.LENGTH]!) - from;
    const copy = hca.readCopies.keep(region, offset, length);
    hca.tx.redirect(region.port, offset, length, copy.port);
    this.dropCopy(resource);
    this.copies[resource] = Object.assign(copy, { start, end });
    this.offsets[resource] = NONE;
  }

  private dropCopy(resource: number): void {
    const copy = this.copies[resource];
    if (copy === undefined) return;
    this.copies[resource] = undefined;
    this.qp.hca.readCopies.drop(copy);
  }

  private moveTo(resource: number, region: Region | undefined): void {
    const { zeroCopy } = this.qp.hca.memory;
    const before = this.regions[resource];
    this.regions[resource] = region;
    if (before && !this.regions.includes(before)) zeroCopy.remove(before, this);
    if (region) zeroCopy.add(region, this);
  }
}
