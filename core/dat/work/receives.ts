/** The data path of an endpoint: posting receives. */
import { DatError } from '../../errors/index.js';
import { CompletionFlags, flagNames, MemPrivileges } from '../common/constants.js';
import { checkBits } from '../../errors/guards.js';
import type { EpRecord } from '../endpoint/record.js';
import type { Segments } from '../memory/segment.js';
import { positionOf } from './post-arguments.js';
import { checkCookie, checkSegments } from './post-checks.js';
import { countOf, makeRoom } from './posting.js';
import { slotFlagsOf } from './request-specs.js';

const { DEFAULT, UNSIGNALLED } = CompletionFlags;

export function postReceive(
  record: EpRecord,
  segments: Segments,
  cookie: number,
  flags: number,
): void {
  const operation = 'ep.postRecv';
  const { core, ep } = record;
  core.context.trace?.(operation, { ep: ep.id, segments: countOf(segments), cookie });
  record.assertLive(operation);
  if (record.knownState !== 'CONNECTED') record.checkLegal(operation, 'postReceive');
  checkCookie(operation, cookie);
  const { init } = record;
  const { maxRecvIov, recvCompletionFlags } = init.attributes;
  if (flags !== DEFAULT) {
    const mask = recvCompletionFlags & UNSIGNALLED;
    const position = positionOf(operation, 'flags');
    checkBits(operation, position, 'flags', flags, mask, flagNames(CompletionFlags, mask));
  }
  if ((init.srq ?? init.xrc) !== undefined) throw otherReceives(record, operation);
  checkSegments(operation, segments, init.pz, MemPrivileges.LOCAL_WRITE, maxRecvIov, Infinity);
  if (record.queues.receives.full) makeRoom(record, operation, false);
  record.queues.postReceive(segments, cookie, slotFlagsOf(flags));
  record.counts.receivePosted();
  record.watermarks?.look(record.receiveBuffers ?? 0);
}

/** It has no receive queue of its own. */
function otherReceives({ init, ep }: EpRecord, operation: string): DatError {
  const { srq } = init;
  if (srq === undefined) {
    return new DatError('DAT_INVALID_STATE', {
      operation,
      message: `initiator ${ep.id} receives nothing`,
      hint: 'receives of the other way come from an XrcSrq of this side, through a target',
      value: ep,
    });
  }
  return new DatError('DAT_INVALID_STATE', {
    subtype: 'DAT_INVALID_STATE_SRQ_IN_USE',
    operation,
    message: `endpoint ${ep.id} receives from shared receive queue ${srq.id}`,
    hint: 'post to that: srq.postRecv()',
    value: srq,
  });
}
