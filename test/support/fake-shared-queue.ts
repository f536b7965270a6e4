/** A shared receive queue whose slots are real, and taken as a test says. */
import {
  type AsyncEventType,
  CQE,
  Ring,
  ringEntries,
  RQE,
  rqeBytes,
  type SharedReceiveQueue,
  type SharedReceiveQueueInit,
  SpiError,
  WcOpcode,
  WcStatus,
} from '../../core/spi/index.js';
import type { FakeCompletions, ScriptedQueuePair } from './scripted-queue-pair.js';

export class FakeSharedReceiveQueue implements SharedReceiveQueue {
  readonly srqn = 7;
  ring;
  /** Slots that are there to be taken, oldest first. */
  readonly waiting: number[] = [];
  /** How many more slots a doorbell takes before it refuses one. */
  takes = Infinity;
  limit = 0;

  constructor(
    readonly init: SharedReceiveQueueInit,
    private readonly ended: string[],
  ) {
    const entries = ringEntries(init.maxWr);
    const slots = Ring.allocate(entries, rqeBytes(init.maxSge));
    this.ring = { slots, submissions: Ring.allocate(entries, 4) };
  }

  ringDoorbell(): void {
    const { submissions } = this.ring;
    while (submissions.length > 0) {
      if (this.takes-- <= 0) throw new SpiError('ENOMEM', 'no room for a slot');
      this.waiting.push(submissions.words[submissions.wordOf(submissions.consumer)] ?? 0);
      submissions.consumer = submissions.consumer + 1;
    }
  }

  setLimit(limit: number): void {
    this.limit = limit;
  }

  resize(): void {
    throw new SpiError('EOPNOTSUPP', 'its size is fixed');
  }

  destroy(): void {
    this.ended.push('srq');
  }

  emit(event: AsyncEventType): void {
    this.init.onEvent(event);
  }

  /** A message comes to the queue pair: it takes the oldest slot, or the one given. */
  complete(qp: ScriptedQueuePair, slot = this.waiting.shift() ?? 0): void {
    const { slots } = this.ring;
    const at = slots.wordOf(slot);
    (qp.init.receiveCq as unknown as FakeCompletions).push({
      [CQE.CONTROL]: WcStatus.SUCCESS | (WcOpcode.RECV << 8),
      [CQE.QPN]: qp.qpn,
      [CQE.COOKIE_LO]: slots.words[at + RQE.COOKIE_LO] ?? 0,
      [CQE.BYTE_LENGTH]: 1,
      [CQE.WQE_INDEX]: slot,
      [CQE.SRQN]: this.srqn,
      [CQE.QP_CONTEXT]: qp.init.context,
    });
  }
}
