/** What all posting calls share: checks, and room in the queues. */
import { DatError } from '../../errors/index.js';
import { CompletionFlags, flagNames } from '../common/constants.js';
import { checkBits, isBitSet } from '../common/guards.js';
import type { EpRecord } from '../endpoint/record.js';
import { positionOf } from './post-arguments.js';
import { checkCookie } from './post-checks.js';

const { UNSIGNALLED } = CompletionFlags;

/** What a request may be posted with, before what it is about. @param mask besides UNSIGNALLED */
export function checkRequest(
  record: EpRecord,
  operation: string,
  cookie: number,
  flags: number,
  mask: number,
): void {
  record.assertLive(operation);
  // In CONNECTED all posts are legal, which spares the look-up of a name.
  if (record.knownState !== 'CONNECTED') record.checkLegal(operation, 'postRequest');
  if (record.init.xrc !== undefined) checkReceiver(record, operation);
  checkCookie(operation, cookie);
  const allowed = mask | (record.attributes.requestCompletionFlags & UNSIGNALLED);
  if (isBitSet(flags, allowed)) return;
  const expected = `of ${flagNames(CompletionFlags, allowed)}`;
  checkBits(operation, positionOf(operation, 'flags'), 'flags', flags, allowed, expected);
}

/** A request of an XRC initiator is for a shared receive queue at the other end. */
function checkReceiver({ queues, ep }: EpRecord, operation: string): void {
  if (queues.srqn !== 0) return;
  throw new DatError('DAT_INVALID_PARAMETER', {
    operation,
    message: `initiator ${ep.id} does not know which shared receive queue the request is for`,
    hint: 'initiator.toSrq(srqn).postSend(...)',
    value: 0,
  });
}

/** The queue looks full: perhaps completions wait to be taken in. */
export function makeRoom(record: EpRecord, operation: string, request: boolean): void {
  record.takeInCompletions();
  const { queues, attributes } = record;
  const full = request ? queues.sendsFull : queues.receivesFull;
  if (!full) return;
  const limit = request ? attributes.maxRequestDtos : attributes.maxRecvDtos;
  throw new DatError('DAT_INSUFFICIENT_RESOURCES', {
    subtype: 'DAT_RESOURCE_CREDITS',
    operation,
    message: `${limit} ${request ? 'requests' : 'receives'} are outstanding: the queue is full`,
    hint: 'wait for completions, or ask for more in the endpoint attributes',
    value: limit,
  });
}

/** For the trace, which is written before parameters are checked. */
export function countOf(segments: unknown): number {
  return Array.isArray(segments) ? segments.length : 1;
}
