/** Shared receive queues by number, which has 24 bits. */
import { type Random, SLOT_SHIFT } from '../../../core/spi/index.js';
import { FreshNumbers } from '../common/fresh-numbers.js';
import { KeyTable } from '../memory/key-table.js';
import type { SoftSharedReceiveQueue } from './shared-receive-queue.js';

/** 0 says "none" in a completion. */
const FIRST_SRQN = 1;
const LAST_SRQN = 0xffffff;

export class SharedReceiveTable {
  private readonly queues = new KeyTable<SoftSharedReceiveQueue>();
  /** Set from the first one on. */
  private numbers: FreshNumbers | undefined = undefined;

  /** @param slot the top byte of all numbers, where others have the device too */
  constructor(
    private readonly random: Random,
    private readonly slot?: number,
  ) {}

  get size(): number {
    return this.queues.size;
  }

  find(srqn: number): SoftSharedReceiveQueue | undefined {
    return this.queues.find(srqn);
  }

  /** @throws SpiError('ENOMEM') when all numbers are in use */
  freshNumber(): number {
    this.numbers ??= this.numbersOfSlot();
    return this.numbers.take('shared receive queue', (srqn) => this.find(srqn) !== undefined);
  }

  private numbersOfSlot(): FreshNumbers {
    const { random, slot } = this;
    const first = slot === undefined ? 0 : slot << SLOT_SHIFT.QPN;
    const last = slot === undefined ? LAST_SRQN : first | 0xffff;
    return new FreshNumbers(random, Math.max(first, FIRST_SRQN), last);
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
