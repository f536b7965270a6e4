/**
 * Checks one receive queue: every receive ends exactly once, in order; the n-th one that succeeds
 * carries the n-th message that the peer posted, neither lost nor doubled nor changed.
 */
import { WcFlags, WcOpcode, WcStatus, WrFlags, WrOpcode } from '../../core/spi/index.js';
import { type ReceiveRequest, scatter, type SendRequest } from './requests.js';
import type { Effect } from './memory-model.js';
import { type Completion, describe } from './send-checker.js';
import { Violation } from './trace.js';

export class ReceiveChecker {
  /** Receives that have not ended, oldest first. */
  readonly outstanding: ReceiveRequest[] = [];
  /** Messages of the peer that use up a receive, in the order of posting. */
  readonly messages: SendRequest[] = [];
  /** How many of them have been received. */
  received = 0;
  /** Messages that came whole, were acknowledged, and could not do what they should. */
  refused = 0;
  /** Windows of this side are gone: a SEND with invalidate finds nothing. */
  revoked = false;
  failure: number = WcStatus.SUCCESS;

  constructor(private readonly name: string) {}

  post(request: ReceiveRequest): void {
    this.outstanding.push(request);
  }

  /** Whether a message of the peer meets a receive that is too small for it. */
  tooLong(message: SendRequest): boolean {
    if (message.opcode === WrOpcode.RDMA_WRITE_WITH_IMM) return false;
    const ahead = this.messages.indexOf(message) - this.received;
    const receive = this.outstanding[ahead];
    // A receive that has failed is not outstanding any more: the message after the last received.
    if (ahead === 0 && this.failure === WcStatus.LOC_LEN_ERR) return true;
    return receive !== undefined && receive.capacity < message.length;
  }

  /** The receive that a completion ends: the oldest one. */
  take(c: Completion): ReceiveRequest {
    const what = describe(`${this.name} receive`, c);
    const receive = this.outstanding.shift();
    if (!receive) throw new Violation(`${what}: none is outstanding`);
    if (c.srqn !== 0) throw new Violation(`${what}: it names SRQ ${c.srqn}`);
    if (receive.index !== c.wqeIndex || receive.cookie !== c.cookie) {
      throw new Violation(`${what}: ${receive.index} (cookie ${receive.cookie}) is the oldest`);
    }
    return receive;
  }

  /** Checks the completion of a receive; the message that it carries, if there is one. */
  complete(receive: ReceiveRequest, c: Completion, broken: boolean): SendRequest | undefined {
    const what = describe(`${this.name} receive`, c);
    if (c.status !== WcStatus.SUCCESS) {
      this.checkFailure(receive, c, broken, what);
      return undefined;
    }
    if (this.failure !== WcStatus.SUCCESS) throw new Violation(`${what}: after a failure`);
    const message = this.messages[this.received++];
    if (!message)
      throw new Violation(`${what}: the peer has sent ${this.messages.length} messages`);
    this.checkMessage(message, receive, c, what);
    return message;
  }

  /** What messages under way may have put into receives so far. */
  effectsUnderWay(): Effect[] {
    const effects: Effect[] = [];
    for (let i = 0; i < this.outstanding.length; i++) {
      const message = this.messages[this.received + i];
      const receive = this.outstanding[i];
      if (message && receive && message.opcode !== WrOpcode.RDMA_WRITE_WITH_IMM) {
        effects.push(...scatter(message.payload, receive.segments));
      }
    }
    return effects;
  }

  checkFlushed(): void {
    const [left] = this.outstanding;
    if (!left) return;
    const count = this.outstanding.length;
    throw new Violation(`${this.name}: ${count} receives never ended, the first is ${left.index}`);
  }

  private checkFailure(
    receive: ReceiveRequest,
    c: Completion,
    broken: boolean,
    what: string,
  ): void {
    if (!broken) throw new Violation(`${what}: the queue pair is not in ERR`);
    if (c.status === WcStatus.WR_FLUSH_ERR) return;
    const message = this.messages[this.received];
    const lateKey = this.revoked && message?.opcode === WrOpcode.SEND_WITH_INV;
    if (lateKey && this.failure === WcStatus.SUCCESS && c.status === WcStatus.REM_INV_REQ_ERR) {
      this.failure = c.status;
      this.refused = 1;
      return;
    }
    const tooLong = message !== undefined && message.length > receive.capacity;
    if (this.failure !== WcStatus.SUCCESS || c.status !== WcStatus.LOC_LEN_ERR || !tooLong) {
      throw new Violation(`${what}: nothing explains it`);
    }
    this.failure = c.status;
  }

  private checkMessage(m: SendRequest, r: ReceiveRequest, c: Completion, what: string): void {
    const write = m.opcode === WrOpcode.RDMA_WRITE_WITH_IMM;
    const immediate = write || m.opcode === WrOpcode.SEND_WITH_IMM;
    const expected = write ? WcOpcode.RECV_RDMA_WITH_IMM : WcOpcode.RECV;
    if (c.opcode !== expected) throw new Violation(`${what}: opcode ${c.opcode}, not ${expected}`);
    if (c.byteLength !== m.length) {
      throw new Violation(`${what}: ${c.byteLength} bytes of a message of ${m.length}`);
    }
    if (!write && m.length > r.capacity) throw new Violation(`${what}: it does not fit`);
    if (((c.flags & WcFlags.WITH_IMM) !== 0) !== immediate) {
      throw new Violation(`${what}: flags ${c.flags} for an opcode ${m.opcode}`);
    }
    const invalidates = m.opcode === WrOpcode.SEND_WITH_INV;
    if (((c.flags & WcFlags.WITH_INV) !== 0) !== invalidates) {
      throw new Violation(`${what}: flags ${c.flags} for an opcode ${m.opcode}`);
    }
    if ((immediate || invalidates) && c.immediate !== m.immediate) {
      throw new Violation(`${what}: immediate or key ${c.immediate}, sent was ${m.immediate}`);
    }
    const solicited = (m.flags & WrFlags.SOLICITED) !== 0;
    if (((c.flags & WcFlags.SOLICITED) !== 0) !== solicited) {
      throw new Violation(`${what}: flags ${c.flags}, solicited was ${solicited}`);
    }
  }
}
