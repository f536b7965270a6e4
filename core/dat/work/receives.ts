/** The data path of an endpoint: posts receives. */
import { DatError } from '../../errors/index.js';
import { CompletionFlags, MemPrivileges } from '../common/constants.js';
import type { Segments } from '../memory/segment.js';
import { checkCookie, checkFlags, checkSegments } from './post-checks.js';
import { countOf, makeRoom } from './posting.js';
import type { EpRecord } from '../endpoint/endpoint-state.js';

const { UNSIGNALLED } = CompletionFlags;

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
  const { init, queues } = record;
  const { maxRecvIov, maxRecvDtos, recvCompletionFlags } = init.attributes;
  checkFlags(operation, flags, recvCompletionFlags & UNSIGNALLED);
  if ((init.srq ?? init.xrc) !== undefined) throw otherReceives(record, operation);
  checkSegments(operation, segments, init.pz, MemPrivileges.LOCAL_WRITE, maxRecvIov, Infinity);
  if (queues.receives.full) makeRoom(operation, record, queues.receives, maxRecvDtos, 'receives');
  queues.postReceive(segments, cookie, flags);
  if (record.knownState === 'DISCONNECTED') record.onFlushedPost();
  record.counts.receivePosted();
  record.watermarks?.look(record.receiveBuffers ?? 0);
}

/** The endpoint has no receive queue of its own. */
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
