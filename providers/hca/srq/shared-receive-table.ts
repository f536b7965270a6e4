/** Shared receive queues by number, which has 24 bits. */
import type { Random } from '../../../core/spi/index.js';
import { FreshNumbers } from '../common/fresh-numbers.js';
import { KeyTable } from '../memory/key-table.js';
import type { SoftSharedReceiveQueue } from './shared-receive-queue.js';

/** 0 says "none" in a completion. */
const FIRST_SRQN = 1;
const LAST_SRQN = 0xffffff;

export class SharedReceiveTable {
  private readonly queues = new KeyTable<SoftSharedReceiveQueue>();
  /** There from the first one on. */
  private numbers: FreshNumbers | undefined = undefined;

  constructor(private readonly random: Random) {}

  get size(): number {
    return this.queues.size;
  }

  find(srqn: number): SoftSharedReceiveQueue | undefined {
    return this.queues.find(srqn);
  }

  /** @throws SpiError('ENOMEM') when all numbers are in use */
  freshNumber(): number {
    this.numbers ??= new FreshNumbers(this.random, FIRST_SRQN, LAST_SRQN);
    return this.numbers.take('shared receive queue', (srqn) => this.find(srqn) !== undefined);
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
