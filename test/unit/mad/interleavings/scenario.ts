/** What the scenarios of October 2004 are made of: agents, posted MADs, and what may happen. */
import { MAD_BYTES } from '../../../../core/spi/index.js';

/** A MAD that is posted at the beginning. */
export interface Posted {
  readonly name: string;
  readonly agent: 'a' | 'b';
  /** One that expects nothing, one that expects a response; as one MAD or an RMPP transfer. */
  readonly kind: 'tell' | 'ask' | 'tell in segments' | 'ask in segments';
}

/** What the handlers of agent `a` do besides looking. */
export type Habit =
  | 'looks on'
  | 'unregisters when it receives'
  | 'unregisters when a send is reported'
  | 'cancels everything when a send is reported'
  | 'sends again when a send is reported';

/** Steps of the consumer, the device and the peer; completions, tasks and timers always happen. */
export type Option =
  | 'unregister a'
  | 'unregister b'
  | 'cancel'
  | 'close'
  | 'fail'
  | 'respond'
  | 'peer acknowledges'
  | 'peer aborts'
  | 'transfer comes in'
  | 'request comes in'
  | 'removal is told'
  | 'removal flushes'
  | 'removal is silent';

export interface Scenario {
  readonly posted: readonly Posted[];
  readonly habit: Habit;
  readonly options: readonly Option[];
  /** Room on QP1. */
  readonly sendDepth: number;
  readonly retries: number;
}

/** Where a MAD has it. */
const [RMPP_HEADER, RMPP_HEADER_END] = [24, 36];

/** To the method that `a` has registered, under a number of the peer's own, and not in segments. */
export function plainRequest(mad: Uint8Array): Uint8Array {
  const request = mad.slice(0, MAD_BYTES).fill(0, RMPP_HEADER, RMPP_HEADER_END);
  request.set([3], 3);
  request.set([0, 0, 9, 8], 8);
  return request;
}
