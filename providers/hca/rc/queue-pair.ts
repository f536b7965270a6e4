/** Reliable connected queue pair: requester, completer and responder of one connection. */
import {
  type AddressVector,
  AsyncEventType,
  describeReport,
  type NetworkReport,
  QpState,
  QpType,
  type QueuePairAttributes,
  type QueuePairInit,
  REFUSAL_CODES,
  SpiError,
  WcStatus,
} from '../../../core/spi/index.js';
import { BTH_LENGTH } from '../../../core/spi/wire/bth.js';
import { OPCODE_BIT, RC, XRC_BASE } from '../../../core/spi/wire/opcode.js';
import { BITS_OF } from '../../../core/spi/wire/packet-layout.js';
import { FLIGHT } from '../common/flight-events.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import { causeOf, neverAnswered } from '../common/report-words.js';
import { type ConnectedQueuePair, isFromPeer } from '../connected/connection.js';
import type { Hca } from '../hca.js';
import { ConnectionMemory } from '../queue-pair/queue-pair-memory.js';
import { SoftQueuePair } from '../queue-pair/queue-pair.js';
import { NO_PATH, type PeerPath } from '../sending/peer-path.js';
import { noReceives } from '../srq/receive-source.js';
import type { SoftXrcDomain } from '../srq/xrc-domain.js';
import { AETH_TYPE, SYNDROME, syndromeType } from '../wire/aeth-syndrome.js';
import { writeAeth } from '../wire/extended-headers.js';
import { NamedReceives, RcResponder } from './responder.js';
import { RcCompleter } from './completer.js';
import { RcRequester } from './requester.js';
import { RESPONSE } from './response-queue.js';

// Reports of the network and the system about packets of a connection. They are noted in its flight
// record, and reported when its retries run out with nothing acknowledged since. None of them takes
// a retry. Only one hint has an effect: if nothing listens at the port, the oldest packet is sent
// again.

class RcNetworkReports {
  /** The last report about packets from the oldest unacknowledged on. */
  private last: NetworkReport | undefined = undefined;
  private una = -1;
  /** The cause, once the retries have run out. */
  cause: string | undefined = undefined;

  constructor(private readonly qp: RcQueuePair) {}

  /** Each kind once for one oldest packet: hints come by the dozen. */
  note(report: NetworkReport): void {
    const { una } = this.qp.requester;
    const same = this.una === una ? this.last : undefined;
    this.una = una;
    if (same?.type === report.type) return;
    // A packet that is too long may be refused for another reason later; it is still too long.
    const isSize = report.type === 'too-big' || report.type === 'too-long';
    if (!same || isSize) this.last = report;
    this.write(report);
  }

  private write(report: NetworkReport): void {
    const { qp } = this;
    const { una } = qp.requester;
    switch (report.type) {
      case 'too-big':
        return qp.note(FLIGHT.TOO_BIG, report.mtuBytes, qp.mtuBytes);
      case 'too-long':
        return qp.note(FLIGHT.TOO_LONG, report.packetBytes, report.mtuBytes);
      case 'refused':
        return qp.note(FLIGHT.REFUSED, Math.max(0, REFUSAL_CODES.indexOf(report.code)), una);
      case 'unreachable':
      case 'port-unreachable':
        return qp.note(report.type === 'unreachable' ? FLIGHT.NO_WAY : FLIGHT.UNREACHABLE, 0, una);
      case 'peer-gone':
        return qp.note(FLIGHT.PEER_GONE, report.path);
    }
  }

  /**
   * A hint that the peer's process is gone: the oldest packet goes again, not for every hint, and
   * it is no retry. Whoever knows two addresses can forge hints; the ACK timer alone ends anything.
   */
  onPortUnreachable(): void {
    const { hca, memory, requester } = this.qp;
    if (!requester.outstanding || requester.waitingForReceiver) return;
    if (hca.nowUs - memory.lastHintUs < hca.parameters.unreachableRetryUs) return;
    memory.lastHintUs = hca.nowUs;
    requester.sendProbe();
  }

  /** The memory that the connection goes through is gone, and with it the connection. */
  onPeerGone(report: NetworkReport): void {
    this.write(report);
    this.cause = describeReport(report);
  }

  /** The retries have run out. */
  onRetriesSpent(): void {
    const { memory, requester, mtuBytes } = this.qp;
    const { peerGid } = memory;
    if (!peerGid) return;
    const last = this.una === requester.una ? this.last : undefined;
    if (last) this.cause = causeOf(last, peerGid, mtuBytes);
    else if (this.isFirstLong) {
      this.qp.note(FLIGHT.NEVER_ANSWERED, mtuBytes, requester.una);
      this.cause = neverAnswered(peerGid, mtuBytes);
    }
  }

  /** The oldest packet is full, and no full one of this send queue's has ever been answered. */
  private get isFirstLong(): boolean {
    const { memory, oldest, fetched, sendRing, requester } = this.qp;
    const slotOf = (index: number): number => index & sendRing.mask;
    const isLong = (index: number): boolean => memory.packets(slotOf(index)) > 1;
    if (!isLong(oldest) || memory.firstPsn(slotOf(oldest)) !== requester.una) return false;
    // A slot keeps the fields of an earlier request until the next request takes it.
    const earlier = sendRing.mask + 1 - ((fetched - oldest) >>> 0);
    for (let n = 1; n <= earlier; n++) if (isLong(oldest - n)) return false;
    return true;
  }
}

/**
 * Parts of a connection that a queue pair has: those of XRC have one half each (IBTA annex A14).
 */
interface Role {
  /** Added to the opcodes of RC to get those of this transport. */
  readonly opcodeBase: number;
  /** OPCODE_BIT: the packets that it takes. */
  readonly takes: number;
  /** Why one of its doorbells may not be rung. */
  readonly noSends?: string;
  readonly noReceives?: string;
}

const { request, response } = OPCODE_BIT;

const ROLES: Readonly<Partial<Record<QpType, Role>>> = {
  [QpType.RC]: { opcodeBase: 0, takes: request | response },
  /** Its every request names the shared receive queue at the other end. */
  [QpType.XRC_INI]: {
    opcodeBase: XRC_BASE,
    takes: response,
    noReceives: 'an XRC initiator receives nothing',
  },
  [QpType.XRC_TGT]: {
    opcodeBase: XRC_BASE,
    takes: request,
    noSends: 'an XRC target sends nothing',
    noReceives: 'an XRC target has no receives of its own',
  },
};

const RECEIVING: ReadonlySet<QpState> = new Set([QpState.RTR, QpState.RTS, QpState.SQD]);

export class RcQueuePair extends SoftQueuePair implements ConnectedQueuePair {
  declare readonly memory: ConnectionMemory;
  private readonly role: Role;
  readonly opcodeBase: number;
  override readonly transport: number;
  readonly requester: RcRequester;
  readonly completer: RcCompleter;
  readonly responder: RcResponder;
  /** Set on an XRC target. */
  readonly namedReceives: NamedReceives | undefined;
  peerPath: PeerPath = NO_PATH;
  destinationQpn = 0;
  mtuBytes = 256;
  /** Its responses must leave before requests: peers of other makes may count on that. */
  acksFirst = true;
  /** The peer and this side keep end-to-end flow control. */
  credits = false;
  sourcePort = 0;
  /** Set from the first report on. */
  private networkReports: RcNetworkReports | undefined = undefined;

  constructor(hca: Hca, qpn: number, init: QueuePairInit) {
    const role = ROLES[init.type]!;
    super(hca, qpn, init, role.noReceives === undefined ? undefined : noReceives(init));
    this.role = role;
    this.opcodeBase = role.opcodeBase;
    this.transport = role.opcodeBase >>> 5;
    if (init.type !== QpType.RC) this.xrcDomain = init.xrcDomain as SoftXrcDomain;
    this.namedReceives = init.type === QpType.XRC_TGT ? new NamedReceives(this) : undefined;
    this.requester = new RcRequester(this);
    this.completer = new RcCompleter(this);
    this.responder = new RcResponder(this);
  }

  protected override createMemory(init: QueuePairInit, receives: boolean): ConnectionMemory {
    return new ConnectionMemory(this.hca.slab, init, { connected: true, receives });
  }

  override ringSendDoorbell(): void {
    const { noSends } = this.role;
    if (noSends !== undefined) throw new SpiError('EINVAL', noSends);
    super.ringSendDoorbell();
  }

  override ringReceiveDoorbell(): void {
    const { noReceives: reason } = this.role;
    if (reason !== undefined) throw new SpiError('EINVAL', reason);
    super.ringReceiveDoorbell();
    if (RECEIVING.has(this.state)) this.responder.onPosted();
  }

  // --- packets ----------------------------------------------------------------------------------

  override receive(rx: ReceivedPacket): void {
    const kind = BITS_OF[rx.opcode]! & (request | response);
    if ((kind & this.role.takes) === 0) this.hca.counters.drops.wrongDirection += 1;
    else if (!isFromPeer(this, rx)) return;
    else if (kind === request) this.responder.receive(rx);
    else this.completer.receive(rx);
  }

  /** Progress: the PSN expected next and the oldest one not acknowledged, 24 bits each. */
  lifeSign(): number {
    return this.responder.ePsn * 2 ** 24 + this.requester.una;
  }

  get lacksReceive(): boolean {
    return this.responder.lacksReceive;
  }

  override transmitRequests(budget: number): boolean {
    return this.requester.transmit(budget);
  }

  /** Sends the owed responses in ERR too: the NAK with the reason, and those before it. */
  override transmitResponses(budget: number): boolean {
    const { responder } = this;
    const { responses } = responder;
    const { tx } = this.hca;
    for (let left = budget; !responses.empty; left--) {
      if (left === 0 || !tx.hasRoomForResponse) return true;
      if (responses.kind !== RESPONSE.RESOURCE) {
        const { psn, syndrome, msn } = responses;
        if (syndrome === SYNDROME.ack) this.sendAck(psn, msn);
        else this.sendNak(psn, syndrome, msn);
        responses.shift();
      } else if (responder.reads.transmitOne(responses.syndrome, responses.psn)) responses.shift();
    }
    return false;
  }

  private sendAck(psn: number, msn: number): void {
    this.hca.counters.acksSent += 1;
    this.sendAcknowledge(psn, this.responder.ackSyndrome(psn), msn);
  }

  private sendNak(psn: number, syndrome: number, msn: number): void {
    const { counters } = this.hca;
    if (syndromeType(syndrome) === AETH_TYPE.rnrNak) counters.rnrNaksSent += 1;
    else counters.naksSent += 1;
    this.sendAcknowledge(psn, syndrome, msn);
  }

  private sendAcknowledge(psn: number, syndrome: number, msn: number): void {
    const header = this.openResponse(RC.acknowledge, psn, 0);
    writeAeth(this.hca.tx.view, header + BTH_LENGTH, syndrome, msn);
  }

  /** Starts a packet that answers; where its BTH is. @param opcode of RC */
  openResponse(opcode: number, psn: number, flags: number): number {
    const { hca, peerPath, opcodeBase, destinationQpn } = this;
    return hca.tx.open(peerPath.number, opcode + opcodeBase, flags, destinationQpn, psn);
  }

  // --- reports of the network ------------------------------------------------------------------

  onReport(report: NetworkReport): void {
    if (report.type === 'peer-gone') {
      if (report.path === this.peerPath.number) this.onPeerGone(report);
      return;
    }
    const isSize = report.type === 'too-big' || report.type === 'too-long';
    if (isSize || this.requester.outstanding) this.reports.note(report);
    if (report.type === 'port-unreachable') this.reports.onPortUnreachable();
  }

  /** Fails the oldest request, if there is one: its outcome is unknown. */
  private onPeerGone(report: NetworkReport): void {
    if (this.state === QpState.ERR || this.state === QpState.RESET) return;
    this.reports.onPeerGone(report);
    if (this.oldest !== this.fetched) this.failOldest(WcStatus.RETRY_EXC_ERR, 0);
    else {
      this.toError();
      this.raise(AsyncEventType.QP_FATAL);
    }
  }

  get reports(): RcNetworkReports {
    return (this.networkReports ??= new RcNetworkReports(this));
  }

  networkTrouble(): string | undefined {
    return this.networkReports?.cause;
  }

  // --- state ------------------------------------------------------------------------------------

  protected override checkModify(to: QpState, attributes: QueuePairAttributes): void {
    super.checkModify(to, attributes);
    // Before anything is stored: the port says which addresses it can reach.
    const { addressVector, pathMtuBytes, destinationQpn } = attributes;
    if (addressVector) this.setPath(addressVector, pathMtuBytes, destinationQpn);
  }

  protected override enter(to: QpState): void {
    const { memory } = this;
    if (to === QpState.RESET) {
      this.stop();
      this.networkReports = undefined;
      this.responder.end();
      this.clearPath();
      this.discardQueues();
      return;
    }
    this.destinationQpn = memory.destinationQpn;
    this.mtuBytes = memory.pathMtuBytes || 256;
    memory.ackTimeoutUs = this.nominalTimeoutUs();
    if (to === QpState.RTR) this.responder.begin();
    if (to === QpState.RTS && this.state === QpState.RTR) {
      this.completer.reset();
      this.requester.begin();
    }
  }

  protected override stop(): void {
    if (this.requester.outstanding) {
      this.hca.port.withdraw?.(this.peerPath.number, this.destinationQpn);
    }
    this.requester.stop();
  }

  override toError(): void {
    this.responder.tellLast();
    super.toError();
    this.settleFirst();
  }

  override destroy(): void {
    if (this.destroyed) return;
    this.responder.tellLast();
    // A destroyed queue pair has no more turns.
    this.transmitResponses(this.hca.parameters.burstPackets);
    this.settleFirst();
    this.responder.endReads();
    super.destroy();
    this.clearPath();
  }

  private settleFirst(): void {
    if (this.hca.tx.waiting > 0 || !this.responder.responses.empty)
      this.hca.scheduler.scheduleFirst(this);
  }

  private nominalTimeoutUs(): number {
    const { timeout } = this.memory;
    if (timeout === 0) return Infinity;
    return Math.max(4.096 * 2 ** timeout, this.hca.parameters.minAckTimeoutUs);
  }

  private setPath(vector: AddressVector, mtuBytes?: number, destinationQpn?: number): void {
    this.peerPath = this.hca.paths.replace(this.peerPath, vector, mtuBytes, destinationQpn);
    this.hca.peers.remove(this);
    this.hca.peers.add(vector.gid, this);
    this.acksFirst = vector.peer?.lateAcks !== true;
    this.credits = vector.peer?.credits === true;
    this.sourcePort = vector.peer?.sourcePort ?? 0;
  }

  private clearPath(): void {
    this.hca.peers.remove(this);
    this.peerPath = this.hca.paths.release(this.peerPath);
  }
}
