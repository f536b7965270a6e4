/**
 * Unreliable connected queue pair (IBTA 9.8.2): SEND and WRITE of any length to one peer, without
 * acknowledgement. A send completes when the port has taken its last packet; a message that loses
 * a packet never arrives.
 */
import { QpState } from '../../../core/spi/index.js';
import type { QueuePairAttributes, QueuePairInit } from '../../../core/spi/index.js';
import type { Engine } from '../queue-pair/engine.js';
import { ATTRIBUTE } from '../queue-pair/kept-attributes.js';
import { NO_PATH } from '../sending/peer-path.js';
import type { PeerPath } from '../sending/peer-path.js';
import { SoftQueuePair } from '../queue-pair/queue-pair.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import { UcRequester } from './requester.js';
import { UcResponder } from './responder.js';
import { TRANSPORT } from '../wire/opcode.js';

export class UcQueuePair extends SoftQueuePair {
  override readonly transport = TRANSPORT.uc;
  peerPath: PeerPath = NO_PATH;
  destinationQpn = 0;
  mtuBytes = 256;
  /** The one UDP port that the peer sends from; 0 for any. */
  private sourcePort = 0;
  private readonly requester: UcRequester;
  private readonly responder: UcResponder;

  constructor(hca: Engine, qpn: number, init: QueuePairInit) {
    super(hca, qpn, init);
    this.requester = new UcRequester(this);
    this.responder = new UcResponder(this);
  }

  override receive(rx: ReceivedPacket): void {
    const { drops } = this.hca.counters;
    if (!this.peerPath.leadsTo(rx)) drops.wrongSource += 1;
    else if (this.sourcePort !== 0 && rx.sourcePort !== this.sourcePort) drops.wrongPort += 1;
    else if (!this.hca.pkeyAllowed(rx)) drops.badPkey += 1;
    else this.responder.receive(rx);
  }

  override transmitResponses(): boolean {
    return false;
  }

  override transmitRequests(budget: number): boolean {
    return this.requester.transmit(budget);
  }

  override onPacketsTaken(taken: number): void {
    this.requester.onPacketsTaken(taken);
  }

  protected override checkModify(to: QpState, attributes: QueuePairAttributes): void {
    super.checkModify(to, attributes);
    const { addressVector: vector } = attributes;
    if (!vector) return;
    this.peerPath = this.hca.paths.replace(this.peerPath, vector);
    this.sourcePort = vector.peer?.sourcePort ?? 0;
  }

  protected override enter(to: QpState): void {
    if (to === QpState.RESET) {
      this.peerPath = this.hca.paths.release(this.peerPath);
      this.discardQueues();
      return;
    }
    const { memory } = this;
    this.destinationQpn = memory.attribute(ATTRIBUTE.destinationQpn);
    this.mtuBytes = memory.attribute(ATTRIBUTE.pathMtuBytes) || 256;
    if (to === QpState.RTR) this.responder.begin(memory.attribute(ATTRIBUTE.receivePsn));
    if (to !== QpState.RTS) return;
    if (this.state === QpState.RTR) this.requester.begin(memory.attribute(ATTRIBUTE.sendPsn));
    this.requester.resume();
  }

  /** A bad request stops the send queue (IBTA 10.3.1.7): it fails, what follows is flushed. */
  stopSending(status: number): void {
    this.hca.counters.localErrors += 1;
    this.completeOldest(status, 0, 0);
    this.setState(QpState.SQE);
    this.flushSends();
  }

  protected override stop(): void {
    // Nothing is under way that could be stopped.
  }

  override destroy(): void {
    if (this.destroyed) return;
    super.destroy();
    this.peerPath = this.hca.paths.release(this.peerPath);
  }
}
