/** Queue pairs that send, write or read without end over a simulated network. */
import {
  Access,
  type CompletionQueue,
  type MemoryRegion,
  type PacketPort,
  type ProtectionDomain,
  QpState,
  QpType,
  type QueuePair,
  RQE,
  SGE,
  SQE,
  WrFlags,
  WrOpcode,
} from '../../core/spi/index.js';
import type { HcaDevice } from '../../providers/hca/index.js';

const BASE = 0x10000;
const MESSAGE_BYTES = 64 << 10;
/** Messages in flight of a flow: 2 MiB, the largest window. */
const DEPTH = 32;
export const MTU_BYTES = 4096;
/** Local ACK timeout code 15 and seven retries: the defaults of an endpoint. */
const TIMEOUT = 15;
const RETRIES = 7;
/** READs in flight: what an endpoint asks for. */
const RD_ATOMIC = 16;
const RIGHTS = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ;

export const OPERATIONS = {
  SEND: WrOpcode.SEND,
  WRITE: WrOpcode.RDMA_WRITE,
  READ: WrOpcode.RDMA_READ,
} as const;
export type Operation = keyof typeof OPERATIONS;

/** What hears of the completions of one queue pair. */
interface Completions {
  onCompletion(success: boolean): void;
}

/** A software device, whatever drives it. */
interface Node {
  readonly device: HcaDevice;
  readonly port: PacketPort;
}

export class Host {
  readonly pd: ProtectionDomain;
  readonly region: MemoryRegion;
  readonly cq: CompletionQueue;
  /** By the context of their queue pairs. */
  readonly ends = new Map<number, Completions>();

  constructor(readonly node: Node) {
    const { device } = node;
    this.pd = device.createProtectionDomain();
    const memory = new Uint8Array(device.allocate(MESSAGE_BYTES));
    this.region = this.pd.registerMemory(memory, RIGHTS, BigInt(BASE));
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
        // CQE words 0 and 10: the status, and the context of the queue pair.
        this.ends.get(ring.words[at + 10]!)!.onCompletion((ring.words[at]! & 0xff) === 0);
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
      maxReceiveWr: 2 * DEPTH,
      maxSendSge: 1,
      maxReceiveSge: 1,
      maxInlineBytes: 0,
      context,
      onEvent: () => undefined,
    });
    qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: RIGHTS });
    return qp;
  }
}

let endsMade = 0;

/** The receives of SENDs, posted again one by one. */
class Receives implements Completions {
  constructor(
    readonly qp: QueuePair,
    private readonly lkey: number,
  ) {
    for (let i = 0; i < 2 * DEPTH; i++) this.post();
  }

  onCompletion(success: boolean): void {
    if (success) this.post();
  }

  private post(): void {
    const ring = this.qp.receiveRing!;
    const at = ring.wordOf(ring.producer);
    ring.words[at + RQE.NUM_SGE] = 1;
    putSegment(ring.words, at + RQE.SEGMENTS, this.lkey);
    ring.producer += 1;
  }
}

function putSegment(words: Uint32Array, at: number, lkey: number): void {
  words[at + SGE.ADDRESS_LO] = BASE;
  words[at + SGE.ADDRESS_HI] = 0;
  words[at + SGE.LENGTH] = MESSAGE_BYTES;
  words[at + SGE.LKEY] = lkey;
}

/** Messages from one host to another, one after the other, as fast as they go. */
export class Flow implements Completions {
  /** Of messages that have completed. */
  bytes = 0;
  failed = false;
  private stopped = false;
  private readonly qp: QueuePair;
  private readonly lkey: number;
  private readonly opcode: number;

  /** Payload goes from `from` to `to`: READs are asked for by `to`. */
  constructor(from: Host, to: Host, operation: Operation = 'WRITE') {
    const [asks, answers] = operation === 'READ' ? [to, from] : [from, to];
    this.peerHost = answers;
    this.opcode = OPERATIONS[operation];
    const context = ++endsMade;
    this.qp = asks.createQp(context);
    const peerContext = ++endsMade;
    const peer = answers.createQp(peerContext);
    if (operation === 'SEND')
      answers.ends.set(peerContext, new Receives(peer, answers.region.lkey));
    raise(this.qp, peer, answers);
    raise(peer, this.qp, asks);
    asks.ends.set(context, this);
    this.lkey = asks.region.lkey;
  }

  private readonly peerHost: Host;

  start(): void {
    for (let i = 0; i < DEPTH; i++) this.post();
    this.qp.ringSendDoorbell();
  }

  /** Nothing is sent after what is under way. */
  stop(): void {
    this.stopped = true;
  }

  onCompletion(success: boolean): void {
    if (this.stopped) return;
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
    words[at + SQE.CONTROL] = this.opcode | (WrFlags.SIGNALED << 8) | (1 << 16);
    words[at + SQE.REMOTE_ADDRESS_LO] = BASE;
    words[at + SQE.REMOTE_ADDRESS_HI] = 0;
    words[at + SQE.RKEY] = this.peerHost.region.rkey;
    putSegment(words, at + SQE.SEGMENTS, this.lkey);
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
    maxDestRdAtomic: RD_ATOMIC,
    minRnrTimer: 1,
  });
  qp.modify({
    state: QpState.RTS,
    sendPsn: 0,
    timeout: TIMEOUT,
    retryCount: RETRIES,
    rnrRetryCount: 7,
    maxRdAtomic: RD_ATOMIC,
  });
}
