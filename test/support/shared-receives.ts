/** A shared receive queue, and connections whose receives come from it. */
import { type QueuePair, type SharedReceiveQueue, WrOpcode } from '../../core/spi/index.js';
import { type Completion, connect, HcaPair } from './hca-pair.js';

export const SLOT_BYTES = 4096;

/** Where a slot's buffer is. */
export const buffer = (slot: number, length = SLOT_BYTES): { offset: number; length: number }[] => [
  { offset: slot * SLOT_BYTES, length },
];
export const slots = (completions: readonly Completion[]): number[] =>
  completions.map((c) => c.wqeIndex);
export const send = (
  length = 8,
): { opcode: number; segments: { offset: number; length: number }[] } => ({
  opcode: WrOpcode.SEND,
  segments: [{ offset: 0, length }],
});

interface Shared {
  readonly pair: HcaPair;
  readonly srq: SharedReceiveQueue;
  readonly senders: QueuePair[];
  readonly receivers: QueuePair[];
}

/** `count` connections from a to b, whose receives come from one queue. */
export function shared(count = 1, init = {}, seed = 1): Shared {
  const pair = new HcaPair(seed);
  const srq = pair.b.createSrq(init);
  const senders: QueuePair[] = [];
  const receivers: QueuePair[] = [];
  for (let i = 0; i < count; i++) {
    senders.push(pair.a.createQp());
    receivers.push(pair.b.createQp({ srq, maxReceiveWr: 0, context: i }));
    connect(pair, senders[i]!, receivers[i]!);
  }
  return { pair, srq, senders, receivers };
}
