/**
 * Unreliable connected queue pair (IBTA 9.8.2): SEND and WRITE of any length to one peer, without
 * acknowledgement. A send completes when the port has taken its last packet; a message that loses
 * a packet never arrives.
 */
import { QpState, type QueuePairAttributes, type QueuePairInit } from '../../../core/spi/index.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import { type ConnectedQueuePair, isFromPeer } from '../connected/connection.js';
import type { Engine } from '../queue-pair/engine.js';
import { SoftQueuePair } from '../queue-pair/queue-pair.js';
import { NO_PATH, type PeerPath } from '../sending/peer-path.js';
import { TRANSPORT, UC_BASE } from '../../../core/spi/wire/opcode.js';
import { UcRequester } from './requester.js';
import { UcResponder } from './responder.js';

export class UcQueuePair extends SoftQueuePair implements ConnectedQueuePair {
  override readonly transport = TRANSPORT.uc;
  readonly opcodeBase = UC_BASE;
  peerPath: PeerPath = NO_PATH;
  destinationQpn = 0;
  mtuBytes = 256;
  sourcePort = 0;
  private readonly requester: UcRequester;
  private readonly responder: UcResponder;

  constructor(hca: Engine, qpn: number, init: QueuePairInit) {
    super(hca, qpn, init);
    this.requester = new UcRequester(this);
    this.responder = new UcResponder(this);
  }

  override receive(rx: ReceivedPacket): void {
    if (isFromPeer(this, rx)) this.responder.receive(rx);
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
    this.destinationQpn = memory.destinationQpn;
    this.mtuBytes = memory.pathMtuBytes || 256;
    if (to === QpState.RTR) this.responder.begin();
    if (to !== QpState.RTS) return;
    if (this.state === QpState.RTR) this.requester.begin();
    this.requester.resume();
  }

  override destroy(): void {
    if (this.destroyed) return;
    super.destroy();
    this.peerPath = this.hca.paths.release(this.peerPath);
  }
}
