/**
 * The data path of an endpoint: posts requests and receives. A post checks its parameters, writes
 * words into a ring and rings a doorbell; it allocates only for errors.
 */
import { invalid } from '../../errors/guards.js';
import { DatError } from '../../errors/index.js';
import { CompletionFlags, flagNames, MemPrivileges } from '../common/constants.js';
import { requireCapability } from '../common/unsupported.js';
import { Symbolic } from '../common/trace.js';
import type { RmrTriplet } from '../memory/rmr-contexts.js';
import {
  checkRemote,
  type LmrSegment,
  type RemoteAddress,
  RemoteSegment,
  type Segments,
} from '../memory/segment.js';
import {
  checkCookie,
  checkFlags,
  checkOperand,
  checkSegments,
  checkU32,
  countOf,
  makeRoom,
} from './post-checks.js';
import { RDMA_READ_TO_RMR, type RequestSpec } from './request-specs.js';
import type { EndpointState } from '../endpoint/endpoint-state.js';

/** Remote segment of requests that have none. */
export const NOWHERE = new RemoteSegment({ address: 0n, rmrContext: 0 });

const { UNSIGNALLED } = CompletionFlags;
const ATOMIC_BYTES = 8;

/** Two operands as words, without an object for either. */
const operands = new BigUint64Array(2);
const operandWords = new Uint32Array(operands.buffer);

/** @param word immediate data, or the context to invalidate; 0 where the row has neither */
export function postRequest(
  record: EndpointState,
  request: RequestSpec,
  segments: Segments,
  cookie: number,
  remote: RemoteAddress,
  flags: number,
  word: number,
): void {
  trace(record, request, segments, cookie, remote, flags);
  checkCapability(record, request);
  if (request.operand !== undefined) checkU32(request.operation, request.operand, word);
  post(record, request, segments, cookie, remote, flags, word);
}

/** A read into the memory of a remote context of our own. */
export function postReadToRmr(
  record: EndpointState,
  sink: RmrTriplet,
  cookie: number,
  remote: RemoteAddress,
  flags: number,
): void {
  const { operation } = RDMA_READ_TO_RMR;
  trace(record, RDMA_READ_TO_RMR, sink, cookie, remote, flags);
  record.assertLive(operation);
  const segment = record.init.pz.rmrContexts.resolve(operation, sink);
  post(record, RDMA_READ_TO_RMR, segment, cookie, remote, flags, 0);
}

/** @param swap 0n where the row has one operand */
export function postAtomic(
  record: EndpointState,
  request: RequestSpec,
  result: LmrSegment,
  cookie: number,
  remote: RemoteAddress,
  flags: number,
  compareAdd: bigint,
  swap: bigint,
): void {
  const { operation, operand = 'add' } = request;
  trace(record, request, result, cookie, remote, flags);
  checkOperand(operation, operand, compareAdd);
  checkOperand(operation, 'swap', swap);
  checkCapability(record, request);
  const bytes = check(record, request, result, cookie, flags);
  if (bytes !== ATOMIC_BYTES) {
    const expected = `${ATOMIC_BYTES} bytes`;
    throw invalid(operation, 'the length of result', bytes, expected, 'segments');
  }
  const target = remoteSegment(operation, remote);
  if ((target.addressLo & (ATOMIC_BYTES - 1)) !== 0) {
    throw invalid(operation, 'remote.address', target.address, 'a multiple of 8');
  }
  if (record.queues.sends.full) makeRequestRoom(record, operation);
  operands[0] = compareAdd;
  operands[1] = swap;
  record.queues.putOperands(operandWords);
  record.queues.postRequest(request, result, cookie, target, flags, 0);
  record.counts.posted(request.opcode, ATOMIC_BYTES);
}

function post(
  record: EndpointState,
  request: RequestSpec,
  segments: Segments,
  cookie: number,
  remote: RemoteAddress,
  flags: number,
  word: number,
): void {
  const bytes = check(record, request, segments, cookie, flags);
  const target = remoteSegment(request.operation, remote);
  if (record.queues.sends.full) makeRequestRoom(record, request.operation);
  record.queues.postRequest(request, segments, cookie, target, flags, word);
  record.counts.posted(request.opcode, bytes);
}

function makeRequestRoom(record: EndpointState, operation: string): void {
  const { queues, init } = record;
  makeRoom(operation, record, queues.sends, init.attributes.maxRequestDtos, 'requests');
}

/** Returns the length of the segments in bytes. */
function check(
  record: EndpointState,
  request: RequestSpec,
  segments: Segments,
  cookie: number,
  flags: number,
): number {
  const { operation, kind, privilege } = request;
  const { pz, attributes, xrc } = record.init;
  record.assertLive(operation);
  // In CONNECTED all posts are legal, which saves the look-up of a name.
  if (record.knownState !== 'CONNECTED') record.checkLegal(operation, 'postRequest');
  if (xrc !== undefined && record.queues.srqn === 0) throw noReceiver(record, operation);
  checkCookie(operation, cookie);
  checkFlags(operation, flags, request.flags | (attributes.requestCompletionFlags & UNSIGNALLED));
  if (kind === 'send') {
    const { maxRequestIov, maxMessageBytes } = attributes;
    return checkSegments(operation, segments, pz, privilege, maxRequestIov, maxMessageBytes);
  }
  const { maxRdmaReadIov, maxRdmaWriteIov, maxRdmaBytes } = attributes;
  if (kind === 'write') {
    return checkSegments(operation, segments, pz, privilege, maxRdmaWriteIov, maxRdmaBytes);
  }
  if (attributes.maxRdmaReadOut === 0) throw noReads(operation);
  if (kind === 'atomic') return checkSegments(operation, segments, pz, privilege, 1, Infinity);
  return checkSegments(operation, segments, pz, privilege, maxRdmaReadIov, maxRdmaBytes);
}

/** A request of an XRC initiator names a shared receive queue of the peer. */
function noReceiver({ ep }: EndpointState, operation: string): DatError {
  return new DatError('DAT_INVALID_PARAMETER', {
    operation,
    message: `initiator ${ep.id} does not know which shared receive queue the request is for`,
    hint: 'initiator.toSrq(srqn).postSend(...)',
    value: 0,
  });
}

function noReads(operation: string): DatError {
  return new DatError('DAT_INVALID_STATE', {
    operation,
    message: 'the endpoint was made with maxRdmaReadOut 0: it may not issue reads or atomics',
    hint: 'create it with another attributes.maxRdmaReadOut',
    value: 0,
  });
}

function checkCapability({ core }: EndpointState, { operation, capability }: RequestSpec): void {
  if (capability !== undefined) requireCapability(operation, core.context.device, capability);
}

/** The parsed remote address; parses one that is not yet. */
function remoteSegment(operation: string, remote: RemoteAddress): RemoteSegment {
  if (remote instanceof RemoteSegment) return remote;
  checkRemote(operation, remote);
  return new RemoteSegment(remote);
}

/** Traces before anything is checked. */
function trace(
  { core, ep }: EndpointState,
  { operation }: RequestSpec,
  segments: unknown,
  cookie: number,
  remote: RemoteAddress,
  flags: number,
): void {
  core.context.trace?.(operation, {
    ep: ep.id,
    segments: countOf(segments),
    cookie,
    remote: remote === NOWHERE ? undefined : remoteText(remote),
    flags: new Symbolic(flagNames(CompletionFlags, flags)),
  });
}

function remoteText(remote: RemoteAddress | undefined): Symbolic | undefined {
  const address: unknown = remote?.address;
  return typeof address === 'bigint' ? new Symbolic(`0x${address.toString(16)}`) : undefined;
}

export function postReceive(
  record: EndpointState,
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
function otherReceives({ init, ep }: EndpointState, operation: string): DatError {
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
