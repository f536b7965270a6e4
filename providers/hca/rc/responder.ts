/**
 * RC responder (IBTA 9.7.4, in the order of checks there): PSN, opcode sequence, access flags,
 * resources, length and rkey, execution, completion, acknowledgement. A fault ends the connection
 * with a NAK.
 */
import { AsyncEventType, QpState, WcOpcode, ringEntries } from '../../../core/spi/index.js';
import { FLIGHT } from '../common/flight-events.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import { FAULT, type Fault, MessageReceiver } from '../connected/message-receiver.js';
import { SequenceGap } from '../queue-pair/sequence-gap.js';
import { SYNDROME, creditCode, creditsOf, rnrNakSyndrome } from '../wire/aeth-syndrome.js';
import { bthAckReq } from '../../../core/spi/wire/bth.js';
import { OPCODE_BIT, OPERATION } from '../../../core/spi/wire/opcode.js';
import {
  ATOMIC_ETH_OFFSET_OF,
  BITS_OF,
  OPERATION_OF,
  XRCETH_OFFSET_OF,
} from '../../../core/spi/wire/packet-layout.js';
import { PSN_MASK, psnAdd, psnDiff, psnNext } from '../wire/psn.js';
import type { RcQueuePair } from './queue-pair.js';
import { RcReads } from './reads.js';
import { ResponseQueue } from './response-queue.js';
import type { SoftSharedReceiveQueue } from '../srq/shared-receive-queue.js';
import { xrcethSrqn } from '../wire/extended-headers.js';

const NO_PSN = -1;

export class RcResponder {
  /** Expected PSN. */
  ePsn = 0;
  /** Messages completed, modulo 2^24. */
  msn = 0;
  readonly responses: ResponseQueue;
  /** Set from the first READ or atomic on: most connections see none. */
  private ownReads: RcReads | undefined = undefined;
  /** The number of them that the peer may have outstanding. */
  private depth = 0;
  /** PSN of the last SEND, WRITE or atomic executed: what a duplicate is answered with. */
  private ackPsn = NO_PSN;
  /** The last packet executed did not ask, and no answer since has told of it. */
  private untold = false;
  /** Set from the first packet that arrived too early. */
  private gap: SequenceGap | undefined = undefined;
  /** Receives that the peer may think to be posted: what it was told, less what it has taken. */
  private told = 0;
  /** PSN of the message that was refused for want of a receive. */
  private unmetPsn = NO_PSN;
  private readonly messages: MessageReceiver;

  constructor(private readonly qp: RcQueuePair) {
    this.messages = new MessageReceiver(qp);
    this.responses = new ResponseQueue(qp.memory);
  }

  /** Entering RTR. */
  begin(): void {
    this.messages.begin();
    this.ePsn = this.qp.memory.receivePsn & PSN_MASK;
    this.msn = 0;
    this.ackPsn = NO_PSN;
    this.untold = false;
    this.told = 0;
    this.gap?.close();
    this.unmetPsn = NO_PSN;
    this.depth = this.qp.memory.maxDestRdAtomic;
    this.responses.begin(ringEntries(64 + 4 * this.depth));
    this.endReads();
  }

  /** The message that is expected next has been refused for want of a receive. */
  get lacksReceive(): boolean {
    return this.unmetPsn === this.ePsn;
  }

  get reads(): RcReads {
    return (this.ownReads ??= new RcReads(this.qp, this, this.depth));
  }

  /** Their answers are not asked for again. */
  endReads(): void {
    this.ownReads?.end();
    this.ownReads = undefined;
  }

  /** Entering RESET: nothing is owed to anybody. */
  end(): void {
    this.untold = false;
    this.responses.clear();
    this.endReads();
  }

  receive(rx: ReceivedPacket): void {
    const { drops } = this.qp.hca.counters;
    this.messages.noteArrival(rx.psn);
    if (this.responses.full) {
      // Our port cannot send the responses already owed: the packet counts as lost in flight.
      drops.backlogged += 1;
      return;
    }
    const ahead = psnDiff(rx.psn, this.ePsn);
    if (ahead > 0) this.onGap(rx.psn);
    else if (ahead < 0) this.onDuplicate(rx);
    else this.onExpected(rx);
  }

  // --- out of sequence --------------------------------------------------------------------------

  /** Sends one NAK each time that the peer passes the gap. */
  private onGap(psn: number): void {
    this.qp.hca.counters.drops.sequenceGap += 1;
    if ((this.gap ??= new SequenceGap()).isNews(psn)) this.sendNak(SYNDROME.nakPsnSequence);
  }

  private onDuplicate(rx: ReceivedPacket): void {
    const { counters } = this.qp.hca;
    counters.duplicateRequests += 1;
    counters.drops.duplicate += 1;
    const operation = OPERATION_OF[rx.opcode]!;
    if (operation === OPERATION.readRequest) this.reads.repeatRead(rx);
    else if (ATOMIC_ETH_OFFSET_OF[rx.opcode] !== 0) this.reads.repeatAtomic(rx);
    else if (operation !== OPERATION.unknown && this.ackPsn !== NO_PSN) this.sendAck(this.ackPsn);
  }

  // --- in sequence ------------------------------------------------------------------------------

  private onExpected(rx: ReceivedPacket): void {
    const operation = OPERATION_OF[rx.opcode]!;
    const bits = BITS_OF[rx.opcode]!;
    const { namedReceives } = this.qp;
    this.gap?.close();
    const fault = this.messages.check(rx, operation, bits) ?? namedReceives?.select(rx);
    if (fault !== undefined) this.fail(fault);
    else if (operation === OPERATION.readRequest) this.reads.executeRead(rx);
    else if (ATOMIC_ETH_OFFSET_OF[rx.opcode] !== 0) this.reads.executeAtomic(rx);
    else this.execute(rx, operation, bits);
  }

  /** Executes a packet of a SEND or WRITE, and acknowledges it. */
  private execute(rx: ReceivedPacket, operation: number, bits: number): void {
    const { messages, ePsn: psn } = this;
    const fault = messages.execute(rx, operation, bits);
    if (fault !== undefined) {
      if (fault === FAULT.notReady) this.refuse();
      else this.fail(fault);
      return;
    }
    const receives = (bits & OPCODE_BIT.receive) !== 0;
    this.ackPsn = psn;
    this.ePsn = psnNext(psn);
    if ((bits & OPCODE_BIT.end) !== 0) this.msn = psnNext(this.msn);
    if (receives) this.told -= 1;
    if (bthAckReq(rx.view, rx.offset)) this.sendAck(psn);
    else this.untold = true;
    if (receives) messages.complete(rx, operation, bits);
  }

  // --- answers ----------------------------------------------------------------------------------

  sendAck(psn: number): void {
    this.untold = false;
    this.responses.acknowledge(psn, SYNDROME.ack, this.msn);
    this.qp.hca.scheduler.scheduleResponses(this.qp, this.qp.acksFirst);
  }

  /** Syndrome of an ACK that leaves now: with the receives posted, if the peer counts them. */
  ackSyndrome(psn: number): number {
    const { posted } = this.qp.receives;
    if (!this.qp.credits || posted < 0) return SYNDROME.ack;
    // Later messages may have taken some of them.
    if (psnNext(psn) !== this.ePsn) return 0;
    const code = creditCode(posted);
    this.told = creditsOf(code);
    return code;
  }

  /** Receives have been posted. The peer hears of it if it may think that there are few. */
  onPosted(): void {
    const { qp } = this;
    if (!qp.credits || this.messages.open !== OPERATION.unknown) return;
    const news =
      this.lacksReceive || (this.ackPsn !== NO_PSN && this.told * 4 < qp.receives.posted);
    if (news) this.sendAck(psnAdd(this.ePsn, -1));
  }

  /** Acknowledges all that has arrived, requested or not: the connection ends here. */
  tellLast(): void {
    if (this.untold) this.sendAck(this.ackPsn);
  }

  private sendNak(syndrome: number): void {
    const { qp } = this;
    this.untold = false;
    qp.note(FLIGHT.NAK_SENT, syndrome, this.ePsn);
    this.responses.nak(this.ePsn, syndrome, this.msn);
    qp.hca.scheduler.scheduleFirst(qp);
  }

  /** Refuses a message for want of a receive: an RNR NAK. */
  private refuse(): void {
    this.qp.hca.counters.drops.noReceive += 1;
    this.unmetPsn = this.ePsn;
    this.sendNak(rnrNakSyndrome(this.qp.memory.minRnrTimer));
    (this.gap ??= new SequenceGap()).open(this.ePsn);
  }

  /** A fatal NAK: the receive in use fails, or an event tells; the connection is over. */
  fail({ syndrome, status }: Fault): void {
    const { qp } = this;
    this.sendNak(syndrome);
    this.ownReads?.repeatKept();
    const tells = qp.receiveEntry >= 0;
    if (tells) qp.completeReceive(status, WcOpcode.RECV, 0, 0, 0, 0);
    // The owner of its queue gets the receive of an XRC target: others hold the target.
    if (!tells || qp.receives.completionQueue) {
      const access = syndrome === SYNDROME.nakRemoteAccess;
      qp.raise(access ? AsyncEventType.QP_ACCESS_ERR : AsyncEventType.QP_REQ_ERR);
    }
    qp.toError();
  }

  /**
   * Replaces the owed responses of a READ by a NAK: its memory went away before they were sent.
   * False in ERR, where none is needed.
   */
  revoke(psn: number): boolean {
    const { qp } = this;
    if (qp.state === QpState.ERR) return false;
    this.responses.clear();
    this.responses.nak(psn, SYNDROME.nakRemoteAccess, this.msn);
    this.ownReads?.repeatKept();
    qp.hca.scheduler.scheduleFirst(qp);
    qp.raise(AsyncEventType.QP_ACCESS_ERR);
    qp.toError();
    return true;
  }

  /** Advances past an accepted READ or atomic request: it uses `count` PSNs and is a message. */
  advance(count: number): void {
    this.untold = false;
    this.ePsn = psnAdd(this.ePsn, count);
    this.msn = psnNext(this.msn);
  }

  /** An atomic counts as executed for the answer to duplicates; a READ does not. */
  noteExecuted(psn: number): void {
    this.ackPsn = psn;
  }
}

/**
 * The receives of an XRC target (IBTA annex A14), an RC responder without receives of its own. Each
 * message takes them from the shared receive queue that it names, completes there, and reaches the
 * memory of that queue's protection domain.
 */
export class NamedReceives {
  /** The queue that the present message names, or the last one did. */
  private named: SoftSharedReceiveQueue | undefined = undefined;

  constructor(private readonly target: RcQueuePair) {}

  /**
   * Selects the queue that a packet names. The first packet of a message decides; the others must
   * name the same queue.
   * @returns the fault of an XRC violation, an invalid request (IBTA annex A14): the queue does not
   * exist, is no XRC queue or belongs to another domain
   */
  select(rx: ReceivedPacket): Fault | undefined {
    const { target } = this;
    const srqn = xrcethSrqn(rx.view, rx.offset + XRCETH_OFFSET_OF[rx.opcode]!);
    const starts = (BITS_OF[rx.opcode]! & OPCODE_BIT.start) !== 0;
    const found = starts ? target.hca.sharedReceives.find(srqn) : this.named;
    if (found === undefined || found.destroyed || found.srqn !== srqn || !this.reaches(found)) {
      return FAULT.request;
    }
    if (found.failed) return FAULT.receive;
    this.named = found;
    target.receives = found;
    return undefined;
  }

  private reaches(srq: SoftSharedReceiveQueue): boolean {
    return srq.xrcDomain === this.target.xrcDomain;
  }
}
