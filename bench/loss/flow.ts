/** Queue pairs that write without end over a simulated network, and what comes of it. */
import { Access, QpState, QpType, SGE, SQE, WrFlags, WrOpcode } from '../../core/spi/index.js';
import type {
  CompletionQueue,
  MemoryRegion,
  ProtectionDomain,
  QueuePair,
} from '../../core/spi/index.js';
import { MockNode } from '../../providers/mock/index.js';
import type { Fabric } from '../../providers/mock/index.js';

const BASE = 0x10000;
const MESSAGE_BYTES = 64 << 10;
/** Messages in flight of a flow: 2 MiB, the largest window. */
const DEPTH = 32;
export const MTU_BYTES = 4096;
/** Local ACK timeout code 15 and seven retries: the defaults of an endpoint. */
const TIMEOUT = 15;
const RETRIES = 7;

export class Host {
  readonly node: MockNode;
  readonly pd: ProtectionDomain;
  readonly region: MemoryRegion;
  readonly cq: CompletionQueue;
  readonly flows = new Map<number, Flow>();

  constructor(
    fabric: Fabric,
    readonly address: string,
  ) {
    this.node = new MockNode(fabric, { addresses: [address] });
    const { device } = this.node;
    this.pd = device.createProtectionDomain();
    const rights = Access.LOCAL_WRITE | Access.REMOTE_WRITE;
    const memory = new Uint8Array(device.allocate(MESSAGE_BYTES));
    this.region = this.pd.registerMemory(memory, rights, BigInt(BASE));
    this.cq = device.createCompletionQueue({
      minEntries: 4096,
      onNotify: () => this.drain(),
      onEvent: () => undefined,
    });
    this.cq.arm(false);
  }

  private drain(): void {
    this.take();
    this.cq.arm(false);
    this.take();
  }

  private take(): void {
    const { cq } = this;
    const { ring } = cq;
    for (let count = cq.poll(); count > 0; count = cq.poll()) {
      for (let i = 0; i < count; i++) {
        const at = ring.wordOf(ring.consumer + i);
        // CQE words 0 and 10: the status, and the number of the flow.
        this.flows.get(ring.words[at + 10]!)!.onCompletion((ring.words[at]! & 0xff) === 0);
      }
      ring.consumer += count;
    }
  }

  createQp(context: number): QueuePair {
    const qp = this.node.device.createQueuePair({
      type: QpType.RC,
      pd: this.pd,
      sendCq: this.cq,
      receiveCq: this.cq,
      maxSendWr: DEPTH,
      maxReceiveWr: 1,
      maxSendSge: 1,
      maxReceiveSge: 1,
      maxInlineBytes: 0,
      context,
      onEvent: () => undefined,
    });
    const accessFlags = Access.LOCAL_WRITE | Access.REMOTE_WRITE;
    qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags });
    return qp;
  }
}

let flowsMade = 0;

/** RDMA writes from one host to another, one after the other, as fast as they go. */
export class Flow {
  /** Of writes that have completed. */
  bytes = 0;
  failed = false;
  private readonly qp: QueuePair;

  constructor(
    from: Host,
    private readonly to: Host,
  ) {
    const context = ++flowsMade;
    this.qp = from.createQp(context);
    const peer = to.createQp(0);
    raise(this.qp, peer, to);
    raise(peer, this.qp, from);
    from.flows.set(context, this);
    this.lkey = from.region.lkey;
  }

  private readonly lkey: number;

  start(): void {
    for (let i = 0; i < DEPTH; i++) this.post();
    this.qp.ringSendDoorbell();
  }

  onCompletion(success: boolean): void {
    if (!success) {
      this.failed = true;
      return;
    }
    this.bytes += MESSAGE_BYTES;
    this.post();
    this.qp.ringSendDoorbell();
  }

  private post(): void {
    const { sendRing: ring } = this.qp;
    const at = ring.wordOf(ring.producer);
    const { words } = ring;
    words[at + SQE.CONTROL] = WrOpcode.RDMA_WRITE | (WrFlags.SIGNALED << 8) | (1 << 16);
    words[at + SQE.REMOTE_ADDRESS_LO] = BASE;
    words[at + SQE.REMOTE_ADDRESS_HI] = 0;
    words[at + SQE.RKEY] = this.to.region.rkey;
    words[at + SQE.SEGMENTS + SGE.ADDRESS_LO] = BASE;
    words[at + SQE.SEGMENTS + SGE.ADDRESS_HI] = 0;
    words[at + SQE.SEGMENTS + SGE.LENGTH] = MESSAGE_BYTES;
    words[at + SQE.SEGMENTS + SGE.LKEY] = this.lkey;
    ring.producer += 1;
  }
}

function raise(qp: QueuePair, peer: QueuePair, { node }: Host): void {
  qp.modify({
    state: QpState.RTR,
    addressVector: { gid: node.port.gids[0]!, localGidIndex: 0 },
    pathMtuBytes: MTU_BYTES,
    destinationQpn: peer.qpn,
    receivePsn: 0,
    maxDestRdAtomic: 1,
    minRnrTimer: 1,
  });
  qp.modify({
    state: QpState.RTS,
    sendPsn: 0,
    timeout: TIMEOUT,
    retryCount: RETRIES,
    rnrRetryCount: 7,
    maxRdAtomic: 1,
  });
}
