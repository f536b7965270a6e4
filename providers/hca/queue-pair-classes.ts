/** Which class makes a queue pair of which type. */
import { QpType, type QueuePairInit } from '../../core/spi/index.js';
import type { Hca } from './hca.js';
import type { SoftQueuePair } from './queue-pair/queue-pair.js';
import { RcQueuePair } from './rc/queue-pair.js';
import { UcQueuePair } from './uc/queue-pair.js';
import { UdQueuePair } from './ud/queue-pair.js';

export type QueuePairClass = new (hca: Hca, qpn: number, init: QueuePairInit) => SoftQueuePair;

export const QUEUE_PAIR_CLASSES: ReadonlyMap<QpType, QueuePairClass> = new Map([
  [QpType.GSI, UdQueuePair],
  [QpType.RC, RcQueuePair],
  [QpType.UC, UcQueuePair],
  [QpType.UD, UdQueuePair],
  [QpType.XRC_INI, RcQueuePair],
  [QpType.XRC_TGT, RcQueuePair],
] as [QpType, QueuePairClass][]);
