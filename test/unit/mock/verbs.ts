/** Two nodes of a fabric with a connected pair of queue pairs: tests of the verbs level. */
import assert from 'node:assert/strict';
import {
  Access,
  type AsyncEventType,
  type CompletionQueue,
  CQE,
  type MemoryRegion,
  QpState,
  QpType,
  type QueuePair,
  RQE,
  SGE,
  SQE,
  WrFlags,
  WrOpcode,
} from '../../../core/spi/index.js';
import { Fabric, type FabricOptions, MockNode } from '../../../providers/mock/index.js';

const IOVA = 0x10000n;

export class Verbs {
  readonly cq: CompletionQueue;
  readonly qp: QueuePair;
  readonly bytes = new Uint8Array(65536);
  readonly region: MemoryRegion;
  readonly events: AsyncEventType[] = [];
  notifications = 0;

  constructor(readonly node: MockNode) {
    const { device } = node;
    const pd = device.createProtectionDomain();
    this.cq = device.createCompletionQueue({
      minEntries: 64,
      onNotify: () => this.notifications++,
      onEvent: () => undefined,
    });
    this.qp = device.createQueuePair({
      type: QpType.RC,
      pd,
      sendCq: this.cq,
      receiveCq: this.cq,
      maxSendWr: 16,
      maxReceiveWr: 16,
      maxSendSge: 1,
      maxReceiveSge: 1,
      maxInlineBytes: 0,
      context: 1,
      onEvent: (event) => this.events.push(event),
    });
    const all = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ;
    this.region = pd.registerMemory(this.bytes, all, IOVA);
  }

  /** @param timeout local ACK timeout exponent; 0 waits for ever */
  connect(peer: Verbs, timeout: number): void {
    const gid = peer.node.port.gids[0];
    assert.ok(gid);
    const accessFlags = Access.REMOTE_WRITE | Access.REMOTE_READ;
    this.qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags });
    this.qp.modify({
      state: QpState.RTR,
      addressVector: { gid, localGidIndex: 0 },
      pathMtuBytes: 1024,
      destinationQpn: peer.qp.qpn,
      receivePsn: 0,
      maxDestRdAtomic: 4,
      minRnrTimer: 10,
    });
    const rates = { timeout, retryCount: 7, rnrRetryCount: 7, maxRdAtomic: 4 };
    this.qp.modify({ state: QpState.RTS, sendPsn: 0, ...rates });
  }

  postSend(lengthBytes: number): void {
    const { sendRing: ring } = this.qp;
    const at = ring.wordOf(ring.producer);
    ring.words.fill(0, at, at + ring.strideWords);
    ring.words[at + SQE.CONTROL] = WrOpcode.SEND | (WrFlags.SIGNALED << 8) | (1 << 16);
    this.segment(ring.words, at + SQE.SEGMENTS, lengthBytes);
    ring.producer += 1;
    this.qp.ringSendDoorbell();
  }

  postReceive(lengthBytes: number): void {
    const { receiveRing: ring } = this.qp;
    assert.ok(ring);
    const at = ring.wordOf(ring.producer);
    ring.words[at + RQE.NUM_SGE] = 1;
    this.segment(ring.words, at + RQE.SEGMENTS, lengthBytes);
    ring.producer += 1;
    this.qp.ringReceiveDoorbell();
  }

  /** Statuses of the completions that wait. */
  statuses(): number[] {
    const { ring } = this.cq;
    const statuses: number[] = [];
    for (let count = this.cq.poll(); count > 0; count--) {
      statuses.push((ring.words[ring.wordOf(ring.consumer) + CQE.CONTROL] ?? 0) & 0xff);
      ring.consumer += 1;
    }
    return statuses;
  }

  private segment(words: Uint32Array, at: number, lengthBytes: number): void {
    words[at + SGE.ADDRESS_LO] = Number(IOVA);
    words[at + SGE.ADDRESS_HI] = 0;
    words[at + SGE.LENGTH] = lengthBytes;
    words[at + SGE.LKEY] = this.region.lkey;
  }
}

export function connectedPair(
  options: FabricOptions = {},
  timeout = 10,
): { fabric: Fabric; a: Verbs; b: Verbs } {
  const fabric = new Fabric(options);
  const a = new Verbs(new MockNode(fabric, { addresses: ['10.0.0.1'] }));
  const b = new Verbs(new MockNode(fabric, { addresses: ['10.0.0.2'] }));
  a.connect(b, timeout);
  b.connect(a, timeout);
  return { fabric, a, b };
}
