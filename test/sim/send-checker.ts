/**
 * Checks one send queue: every request ends exactly once, in order, signalled as its flags say,
 * with a status that its plan and the state of the world allow.
 */
import { CQE, WcOpcode, WcStatus, WrFlags, WrOpcode, nameOf } from '../../core/spi/index.js';
import type { SendRequest } from './requests.js';
import { Violation } from './trace.js';

/** A completion, copied out of its ring. */
export interface Completion {
  readonly status: number;
  readonly opcode: number;
  readonly flags: number;
  readonly qpn: number;
  readonly cookie: number;
  readonly byteLength: number;
  readonly immediate: number;
  readonly wqeIndex: number;
  readonly srqn: number;
  readonly context: number;
}

export function readCompletion(words: Uint32Array, at: number): Completion {
  const word = (offset: number): number => words[at + offset] as number;
  return {
    status: word(CQE.CONTROL) & 0xff,
    opcode: (word(CQE.CONTROL) >>> 8) & 0xff,
    flags: (word(CQE.CONTROL) >>> 16) & 0xff,
    qpn: word(CQE.QPN),
    cookie: word(CQE.COOKIE_LO),
    byteLength: word(CQE.BYTE_LENGTH),
    immediate: word(CQE.IMMEDIATE_OR_INVALIDATE),
    wqeIndex: word(CQE.WQE_INDEX),
    srqn: word(CQE.SRQN),
    context: word(CQE.QP_CONTEXT),
  };
}

/** What the sending side may be told, given what has happened. */
export interface SendWorld {
  /** Packets may have been lost since the connection was made, or the peer has left RTS. */
  readonly unreachable: boolean;
  /** Retries of "receiver not ready" are limited. */
  readonly rnrLimited: boolean;
  /** The peer's target memory has been deregistered. */
  readonly revoked: boolean;
  /** So has that of this side, and its windows are gone. */
  readonly revokedHere: boolean;
  /** The queue pair is in ERR. */
  readonly broken: boolean;
  /** Whether the receive that this request meets is too small for it. */
  tooLong(request: SendRequest): boolean;
}

const WC_OPCODE: Readonly<Record<number, number>> = {
  [WrOpcode.SEND]: WcOpcode.SEND,
  [WrOpcode.SEND_WITH_IMM]: WcOpcode.SEND,
  [WrOpcode.SEND_WITH_INV]: WcOpcode.SEND,
  [WrOpcode.RDMA_WRITE]: WcOpcode.RDMA_WRITE,
  [WrOpcode.RDMA_WRITE_WITH_IMM]: WcOpcode.RDMA_WRITE,
  [WrOpcode.RDMA_READ]: WcOpcode.RDMA_READ,
  [WrOpcode.ATOMIC_CMP_AND_SWP]: WcOpcode.COMP_SWAP,
  [WrOpcode.ATOMIC_FETCH_AND_ADD]: WcOpcode.FETCH_ADD,
  [WrOpcode.BIND_MW]: WcOpcode.BIND_MW,
  [WrOpcode.LOCAL_INV]: WcOpcode.LOCAL_INV,
};

export interface Ended {
  readonly request: SendRequest;
  readonly status: number;
}

export class SendChecker {
  /** Requests that have not ended, oldest first. */
  readonly outstanding: SendRequest[] = [];
  /** Status of the request that broke the queue pair; SUCCESS while none has. */
  failure: number = WcStatus.SUCCESS;
  ended = 0;
  /** Messages that used up a receive of the peer, as far as completions say so. */
  delivered = 0;

  constructor(private readonly name: string) {}

  post(request: SendRequest): void {
    this.outstanding.push(request);
  }

  /** Checks a completion; the requests that it ends, oldest first. */
  complete(completion: Completion, world: SendWorld): Ended[] {
    const oldest = this.outstanding[0];
    const ahead = oldest === undefined ? -1 : (completion.wqeIndex - oldest.index) | 0;
    const request = ahead < 0 ? undefined : this.outstanding[ahead];
    const what = describe(this.name, completion);
    if (!request) throw new Violation(`${what}: no such request is outstanding`);
    if (completion.cookie !== request.cookie) {
      throw new Violation(`${what}: the cookie posted was ${request.cookie}`);
    }
    const ended = this.outstanding.splice(0, ahead + 1).map((each) => ({
      request: each,
      status: each === request ? completion.status : WcStatus.SUCCESS,
    }));
    for (const { request: silent } of ended.slice(0, -1)) this.checkSilent(silent, what);
    this.checkStatus(request, completion, world, what);
    this.ended += ended.length;
    for (const { request: each, status } of ended) {
      if (status === WcStatus.SUCCESS && consumesReceive(each.opcode)) this.delivered++;
    }
    return ended;
  }

  /**
   * The queue pair is in ERR and its completions have been read: what is left has succeeded and was
   * not to be signalled, for anything else would have been flushed.
   */
  endSilently(): readonly SendRequest[] {
    const left = this.outstanding.splice(0);
    for (const request of left) this.checkSilent(request, `${this.name}: the end`);
    this.ended += left.length;
    this.delivered += left.filter(({ opcode }) => consumesReceive(opcode)).length;
    return left;
  }

  /** A request that a later one ends: it may succeed so, if it was not to be signalled. */
  private checkSilent(request: SendRequest, what: string): void {
    if ((request.flags & WrFlags.SIGNALED) !== 0) {
      throw new Violation(`${what}: signalled request ${request.index} has not completed`);
    }
    if (this.failure !== WcStatus.SUCCESS) {
      throw new Violation(`${what}: request ${request.index} was not flushed`);
    }
    if (request.plan !== 'ok') {
      throw new Violation(`${what}: request ${request.index} (${request.plan}) succeeded`);
    }
  }

  private checkStatus(r: SendRequest, c: Completion, world: SendWorld, what: string): void {
    if (c.status === WcStatus.SUCCESS) {
      if (this.failure !== WcStatus.SUCCESS) throw new Violation(`${what}: after a failure`);
      if (r.plan !== 'ok') throw new Violation(`${what}: it was posted as ${r.plan}`);
      if ((r.flags & WrFlags.SIGNALED) === 0) throw new Violation(`${what}: it is unsignalled`);
      if (c.opcode !== WC_OPCODE[r.opcode]) throw new Violation(`${what}: wrong opcode`);
      if (c.byteLength !== r.length) throw new Violation(`${what}: length ${r.length} was posted`);
      return;
    }
    if (c.status === WcStatus.WR_FLUSH_ERR) {
      if (!world.broken) throw new Violation(`${what}: the queue pair is not in ERR`);
      return;
    }
    if (this.failure !== WcStatus.SUCCESS) throw new Violation(`${what}: a second failure`);
    this.failure = c.status;
    if (!allowed(r, c.status, world)) {
      throw new Violation(`${what}: cannot be for a request that is ${r.plan}`);
    }
  }
}

function allowed(request: SendRequest, status: number, world: SendWorld): boolean {
  switch (status) {
    case WcStatus.LOC_PROT_ERR:
      return request.plan === 'bad-lkey';
    case WcStatus.MW_BIND_ERR:
      return request.plan === 'bad-bind' || (world.revokedHere && changesWindow(request));
    case WcStatus.LOC_QP_OP_ERR:
      return world.revokedHere && request.opcode === WrOpcode.BIND_MW;
    case WcStatus.REM_ACCESS_ERR:
      return isAbuse(request) || (world.revoked && usesTarget(request));
    case WcStatus.REM_INV_REQ_ERR:
      return world.tooLong(request);
    case WcStatus.RETRY_EXC_ERR:
      return world.unreachable;
    case WcStatus.RNR_RETRY_EXC_ERR:
      return world.rnrLimited && consumesReceive(request.opcode);
    default:
      return false;
  }
}

/** It must be refused by the peer. */
export function isAbuse({ plan }: SendRequest): boolean {
  return plan === 'bad-rkey' || plan === 'out-of-bounds';
}

/** It reaches into the peer's target memory. */
function usesTarget(request: SendRequest): boolean {
  return request.rkey !== 0 && request.length > 0;
}

function changesWindow({ opcode }: SendRequest): boolean {
  return opcode === WrOpcode.BIND_MW || opcode === WrOpcode.LOCAL_INV;
}

/** SENDs and WRITE with immediate use up a receive of the peer. */
export function consumesReceive(opcode: number): boolean {
  return (
    opcode === WrOpcode.SEND ||
    opcode === WrOpcode.SEND_WITH_IMM ||
    opcode === WrOpcode.SEND_WITH_INV ||
    opcode === WrOpcode.RDMA_WRITE_WITH_IMM
  );
}

export function describe(name: string, c: Completion): string {
  const status = nameOf(WcStatus, c.status);
  return `${name}: completion of ${c.wqeIndex} (cookie ${c.cookie}) with ${status}`;
}
