/** Queue pairs by number: pages of an array, so a look-up is two loads whatever the numbers are. */
import { assert } from '../../../core/spi/checks/index.js';
import { type Random, SLOT_SHIFT } from '../../../core/spi/index.js';
import { FreshNumbers } from '../common/fresh-numbers.js';
import type { SoftQueuePair } from './queue-pair.js';

const PAGE_BITS = 10;
const PAGE = 1 << PAGE_BITS;
/** 0 and 1 are management's, 0xffffff is multicast; rxe too begins above the well-known ones. */
const FIRST_QPN = 0x10;
const LAST_QPN = 0xfffffe;

interface Page {
  readonly entries: (SoftQueuePair | undefined)[];
  used: number;
}

export class QueuePairTable {
  private readonly pages: (Page | undefined)[] = new Array<Page | undefined>(1 << (24 - PAGE_BITS));
  private readonly numbers: FreshNumbers;
  private count = 0;

  /** @param slot the top byte of all numbers, where others have the device too */
  constructor(random: Random, slot?: number) {
    const first = slot === undefined ? 0 : slot << SLOT_SHIFT.QPN;
    const last = slot === undefined ? LAST_QPN : first | 0xffff;
    this.numbers = new FreshNumbers(random, Math.max(first, FIRST_QPN), last);
  }

  get size(): number {
    return this.count;
  }

  find(qpn: number): SoftQueuePair | undefined {
    return this.pages[qpn >>> PAGE_BITS]?.entries[qpn & (PAGE - 1)];
  }

  *[Symbol.iterator](): Iterator<SoftQueuePair> {
    for (const page of this.pages) {
      if (page) for (const qp of page.entries) if (qp) yield qp;
    }
  }

  /** @throws SpiError('ENOMEM') when all numbers are in use */
  freshQpn(): number {
    return this.numbers.take('queue pair', (qpn) => this.find(qpn) !== undefined);
  }

  insert(qp: SoftQueuePair): void {
    const index = qp.qpn >>> PAGE_BITS;
    const page = (this.pages[index] ??= {
      entries: new Array<SoftQueuePair | undefined>(PAGE).fill(undefined),
      used: 0,
    });
    assert(page.entries[qp.qpn & (PAGE - 1)] === undefined, 'a QPN is given once', qp.qpn);
    page.entries[qp.qpn & (PAGE - 1)] = qp;
    page.used += 1;
    this.count += 1;
  }

  remove(qp: SoftQueuePair): void {
    const page = this.pages[qp.qpn >>> PAGE_BITS];
    if (page?.entries[qp.qpn & (PAGE - 1)] !== qp) return;
    page.entries[qp.qpn & (PAGE - 1)] = undefined;
    page.used -= 1;
    this.count -= 1;
    if (page.used === 0) this.pages[qp.qpn >>> PAGE_BITS] = undefined;
  }
}
