/** Reliable connected queue pair: requester, completer and responder of one connection. */
import { AsyncEventType, DEFAULT_PKEY, QpState, SpiError, gidWords } from '../../core/spi/index.js';
import type {
  AddressVector,
  GidWords,
  QueuePairAttributes,
  QueuePairInit,
} from '../../core/spi/index.js';
import type { Hca } from './hca.js';
import { SoftQueuePair } from './queue-pair.js';
import { RcCompleter } from './rc-completer.js';
import { RcRequester } from './rc-requester.js';
import { RcResponder } from './rc-responder.js';
import type { ReceiveSource } from './receive-source.js';
import type { ReceivedPacket } from './received-packet.js';
import { RESPONSE } from './response-queue.js';
import { AETH_TYPE, SYNDROME, syndromeType } from './wire/aeth-syndrome.js';
import { writeAeth } from './wire/aeth.js';
import { BTH_LENGTH, writeBth } from './wire/bth.js';
import { OPCODE_BIT, RC, TRANSPORT } from './wire/opcode.js';
import { BITS_OF, HEADER_LENGTH_OF } from './wire/packet-layout.js';

const NO_GID: GidWords = [0, 0, 0, 0];

export class RcQueuePair extends SoftQueuePair {
  override readonly transport = TRANSPORT.rc;
  readonly requester: RcRequester;
  readonly completer: RcCompleter;
  readonly responder: RcResponder;
  path = -1;
  destinationQpn = 0;
  mtuBytes = 256;
  /** Local ACK timeout in microseconds; Infinity waits for ever. */
  ackTimeoutUs = Infinity;
  /** The peer: what comes from elsewhere is not of this connection. */
  private peer: GidWords = NO_GID;
  private localGidIndex = 0;
  private drainReported = false;

  constructor(hca: Hca, qpn: number, init: QueuePairInit, receives?: ReceiveSource) {
    super(hca, qpn, init, receives);
    this.requester = new RcRequester(this);
    this.completer = new RcCompleter(this);
    this.responder = new RcResponder(this);
  }

  // --- packets ----------------------------------------------------------------------------------

  override receive(rx: ReceivedPacket): void {
    const { counters } = this.hca;
    const [p0, p1, p2, p3] = this.peer;
    if (
      rx.source3 !== p3 ||
      rx.source2 !== p2 ||
      rx.source1 !== p1 ||
      rx.source0 !== p0 ||
      rx.localGidIndex !== this.localGidIndex
    ) {
      counters.drops.wrongSource += 1;
    } else if (!this.hca.pkeyAllowed(rx)) counters.drops.badPkey += 1;
    else if ((BITS_OF[rx.opcode]! & OPCODE_BIT.request) !== 0) this.responder.receive(rx);
    else this.completer.receive(rx);
  }

  override transmitRequests(budget: number): boolean {
    return this.requester.transmit(budget);
  }

  /** What is owed goes out in ERR too: the NAK that tells why, and what came before it. */
  override transmitResponses(budget: number): boolean {
    const { responses, reads } = this.responder;
    const { tx } = this.hca;
    for (let left = budget; !responses.empty; left--) {
      if (left === 0 || !tx.hasRoom(1)) return true;
      if (responses.kind !== RESPONSE.RESOURCE) {
        this.sendAcknowledge(responses.psn, responses.syndrome, responses.msn);
        responses.shift();
      } else if (reads.transmitOne(responses.syndrome, responses.psn)) responses.shift();
    }
    return false;
  }

  private sendAcknowledge(psn: number, syndrome: number, msn: number): void {
    const { tx, counters } = this.hca;
    if (syndrome === SYNDROME.ack) counters.acksSent += 1;
    else if (syndromeType(syndrome) === AETH_TYPE.rnrNak) counters.rnrNaksSent += 1;
    else counters.naksSent += 1;
    const header = tx.open(this.path, HEADER_LENGTH_OF[RC.acknowledge]!);
    const { view } = tx;
    writeBth(view, header, RC.acknowledge, 0, 0, DEFAULT_PKEY, this.destinationQpn, false, psn);
    writeAeth(view, header + BTH_LENGTH, syndrome, msn);
  }

  // --- state ------------------------------------------------------------------------------------

  protected override checkModify(to: QpState, attributes: QueuePairAttributes): void {
    const draining = this.state === QpState.SQD && this.oldest !== this.fetched;
    if (draining && (to === QpState.RTS || to === QpState.SQD)) {
      throw new SpiError('EINVAL', `RC SQD: ${this.fetched - this.oldest} requests still drain`);
    }
    // Before anything is stored: the port says which addresses it can reach.
    if (attributes.addressVector) this.setPath(attributes.addressVector);
  }

  protected override enter(to: QpState): void {
    const { attributes } = this;
    if (to === QpState.RESET) {
      this.stop();
      this.responder.responses.clear();
      this.clearPath();
      this.discardQueues();
      return;
    }
    this.destinationQpn = attributes.destinationQpn ?? 0;
    this.mtuBytes = attributes.pathMtuBytes ?? 256;
    this.ackTimeoutUs = this.nominalTimeoutUs();
    if (to === QpState.SQD && this.state !== QpState.SQD) this.drainReported = false;
    if (to === QpState.RTR) {
      this.responder.begin(attributes.receivePsn ?? 0, attributes.maxDestRdAtomic ?? 0);
    }
    if (to === QpState.RTS && this.state === QpState.RTR) {
      this.completer.reset();
      this.requester.begin(attributes.sendPsn ?? 0);
    }
  }

  protected override entered(to: QpState): void {
    super.entered(to);
    if (to === QpState.SQD) this.checkDrained();
  }

  protected override stop(): void {
    this.requester.stop();
  }

  /** SQD: tells, once, that every request begun has completed. */
  checkDrained(): void {
    if (this.drainReported || this.oldest !== this.fetched) return;
    this.drainReported = true;
    if (this.attributes.enableSqdAsyncNotify === true) this.raise(AsyncEventType.SQ_DRAINED);
  }

  override destroy(): void {
    if (this.destroyed) return;
    super.destroy();
    this.clearPath();
  }

  private nominalTimeoutUs(): number {
    const { timeout } = this.attributes;
    if (timeout === undefined || timeout === 0) return Infinity;
    return Math.max(4.096 * 2 ** timeout, this.hca.parameters.minAckTimeoutUs);
  }

  private setPath(vector: AddressVector): void {
    let path: number;
    try {
      path = this.hca.port.addPath(vector.gid, vector.localGidIndex);
    } catch (cause) {
      throw new SpiError('ENETUNREACH', 'addressVector.gid: no local address reaches it', {
        cause,
      });
    }
    this.clearPath();
    this.path = path;
    this.peer = gidWords(vector.gid);
    this.localGidIndex = vector.localGidIndex;
    this.hca.peers.add(vector.gid, this);
  }

  private clearPath(): void {
    if (this.path < 0) return;
    this.hca.peers.remove(this);
    this.hca.releasePath(this.path);
    this.path = -1;
    this.peer = NO_GID;
  }
}
