/** Reliable connected queue pair: requester, completer and responder of one connection. */
import { DEFAULT_PKEY, QpState } from '../../../core/spi/index.js';
import type {
  AddressVector,
  NetworkReport,
  QueuePairAttributes,
  QueuePairInit,
} from '../../../core/spi/index.js';
import type { Engine } from '../queue-pair/engine.js';
import { ATTRIBUTE } from '../queue-pair/kept-attributes.js';
import { NO_PATH } from '../sending/peer-path.js';
import type { PeerPath } from '../sending/peer-path.js';
import type { ReportTaker } from '../sending/peer-table.js';
import { SoftQueuePair } from '../queue-pair/queue-pair.js';
import { RcCompleter } from './completer.js';
import { RcMemory } from './memory.js';
import { RcNetworkReports } from './network-reports.js';
import { RcRequester } from './requester.js';
import { RcResponder } from './responder.js';
import type { ReceiveSource } from '../srq/receive-source.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import { RESPONSE } from './response-queue.js';
import { AETH_TYPE, SYNDROME, syndromeType } from '../wire/aeth-syndrome.js';
import { writeAeth } from '../wire/aeth.js';
import { BTH_LENGTH, writeBth } from '../wire/bth.js';
import { OPCODE_BIT, RC } from '../wire/opcode.js';
import { BITS_OF, HEADER_LENGTH_OF } from '../wire/packet-layout.js';

export class RcQueuePair extends SoftQueuePair implements ReportTaker {
  declare readonly memory: RcMemory;
  override readonly transport: number;
  readonly requester: RcRequester;
  readonly completer: RcCompleter;
  readonly responder: RcResponder;
  destinationQpn = 0;
  mtuBytes = 256;
  /** Its responses may not leave behind requests: all but a peer of ours may count on that. */
  acksFirst = true;
  /** The one UDP port that the peer sends from; 0 for any. */
  private sourcePort = 0;
  private peerPath: PeerPath = NO_PATH;
  /** There from the first report on. */
  private networkReports: RcNetworkReports | undefined = undefined;

  /** @param opcodeBase what its transport adds to the opcodes of RC */
  constructor(
    hca: Engine,
    qpn: number,
    init: QueuePairInit,
    receives?: ReceiveSource,
    readonly opcodeBase = 0,
  ) {
    super(hca, qpn, init, receives);
    this.transport = opcodeBase >>> 5;
    this.requester = new RcRequester(this);
    this.completer = new RcCompleter(this);
    this.responder = new RcResponder(this);
  }

  protected override createMemory(init: QueuePairInit, receives: boolean): RcMemory {
    return new RcMemory(this.hca.slab, init, receives);
  }

  // --- packets ----------------------------------------------------------------------------------

  override receive(rx: ReceivedPacket): void {
    const { counters } = this.hca;
    if (!this.peerPath.leadsTo(rx)) counters.drops.wrongSource += 1;
    else if (this.sourcePort !== 0 && rx.sourcePort !== this.sourcePort)
      counters.drops.wrongPort += 1;
    else if (!this.hca.pkeyAllowed(rx)) counters.drops.badPkey += 1;
    else if ((BITS_OF[rx.opcode]! & OPCODE_BIT.request) !== 0) this.responder.receive(rx);
    else this.completer.receive(rx);
  }

  /** XRC: the receives that a request names; false when it had to be refused. */
  selectReceives(_rx: ReceivedPacket): boolean {
    return true;
  }

  /** What it expects next, and what it has had acknowledged: 24 bits each. */
  lifeSign(): number {
    return this.responder.ePsn * 2 ** 24 + this.requester.una;
  }

  get lacksReceive(): boolean {
    return this.responder.lacksReceive;
  }

  /** The port's number for the way to the peer. */
  get path(): number {
    return this.peerPath.number;
  }

  override transmitRequests(budget: number): boolean {
    return this.requester.transmit(budget);
  }

  /** What is owed goes out in ERR too: the NAK that tells why, and what came before it. */
  override transmitResponses(budget: number): boolean {
    const { responder } = this;
    const { responses } = responder;
    const { tx } = this.hca;
    for (let left = budget; !responses.empty; left--) {
      if (left === 0 || !tx.hasRoomForResponse) return true;
      if (responses.kind !== RESPONSE.RESOURCE) {
        this.sendAcknowledge(responses.psn, responses.syndrome, responses.msn);
        responses.shift();
      } else if (responder.reads.transmitOne(responses.syndrome, responses.psn)) responses.shift();
    }
    return false;
  }

  private sendAcknowledge(psn: number, syndrome: number, msn: number): void {
    const { tx, counters } = this.hca;
    if (syndrome === SYNDROME.ack) counters.acksSent += 1;
    else if (syndromeType(syndrome) === AETH_TYPE.rnrNak) counters.rnrNaksSent += 1;
    else counters.naksSent += 1;
    const opcode = RC.acknowledge + this.opcodeBase;
    const header = tx.open(this.path, HEADER_LENGTH_OF[opcode]!);
    const { view } = tx;
    writeBth(view, header, opcode, 0, 0, DEFAULT_PKEY, this.destinationQpn, false, psn);
    writeAeth(view, header + BTH_LENGTH, syndrome, msn);
  }

  // --- reports of the network ------------------------------------------------------------------

  onReport(report: NetworkReport): void {
    const isSize = report.type === 'too-big' || report.type === 'too-long';
    if (isSize || this.requester.outstanding) this.reports.note(report);
    if (report.type === 'port-unreachable') this.reports.onPortUnreachable();
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
    if (attributes.addressVector) this.setPath(attributes.addressVector);
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
    this.destinationQpn = memory.attribute(ATTRIBUTE.destinationQpn);
    this.mtuBytes = memory.attribute(ATTRIBUTE.pathMtuBytes) || 256;
    memory.ackTimeoutUs = this.nominalTimeoutUs();
    if (to === QpState.RTR) {
      this.responder.begin(
        memory.attribute(ATTRIBUTE.receivePsn),
        memory.attribute(ATTRIBUTE.maxDestRdAtomic),
      );
    }
    if (to === QpState.RTS && this.state === QpState.RTR) {
      this.completer.reset();
      this.requester.begin(memory.attribute(ATTRIBUTE.sendPsn));
    }
  }

  protected override stop(): void {
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
      this.hca.turns.scheduleFirst(this);
  }

  private nominalTimeoutUs(): number {
    const timeout = this.memory.attribute(ATTRIBUTE.timeout);
    if (timeout === 0) return Infinity;
    return Math.max(4.096 * 2 ** timeout, this.hca.parameters.minAckTimeoutUs);
  }

  private setPath(vector: AddressVector): void {
    this.peerPath = this.hca.paths.replace(this.peerPath, vector);
    this.hca.peers.remove(this);
    this.hca.peers.add(vector.gid, this);
    this.acksFirst = vector.peer?.lateAcks !== true;
    this.sourcePort = vector.peer?.sourcePort ?? 0;
  }

  private clearPath(): void {
    this.hca.peers.remove(this);
    this.peerPath = this.hca.paths.release(this.peerPath);
  }
}
