/**
 * Shared receive queues by number. Numbers have 24 bits and are given out upward from a random
 * start: one that is gone comes again only after all others.
 */
import { SpiError } from '../../../core/spi/index.js';
import type { Random } from '../../../core/spi/index.js';
import { KeyTable } from '../memory/key-table.js';
import type { SoftSharedReceiveQueue } from './shared-receive-queue.js';

/** 0 says "none" in a completion. */
const FIRST_SRQN = 1;
const LAST_SRQN = 0xffffff;

export class SharedReceiveTable {
  private readonly queues = new KeyTable<SoftSharedReceiveQueue>();
  /** 0 before the first one. */
  private next = 0;

  constructor(private readonly random: Random) {}

  get size(): number {
    return this.queues.size;
  }

  find(srqn: number): SoftSharedReceiveQueue | undefined {
    return this.queues.find(srqn);
  }

  /** @throws SpiError('ENOMEM') when all numbers are in use */
  freshNumber(): number {
    if (this.next === 0) this.next = FIRST_SRQN + (this.random.u32() % LAST_SRQN);
    for (let tries = FIRST_SRQN; tries <= LAST_SRQN; tries++) {
      const srqn = this.next;
      this.next = srqn === LAST_SRQN ? FIRST_SRQN : srqn + 1;
      if (this.queues.find(srqn) === undefined) return srqn;
    }
    throw new SpiError('ENOMEM', 'every shared receive queue number is in use');
  }

  insert(srq: SoftSharedReceiveQueue): void {
    this.queues.insert(srq.srqn, srq);
  }

  remove(srq: SoftSharedReceiveQueue): void {
    this.queues.remove(srq.srqn);
  }

  /** The device closes: whatever is left goes. */
  destroyAll(): void {
    for (const srq of [...this.queues]) srq.destroy();
  }
}
