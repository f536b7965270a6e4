/** A queue pair whose rings are real: work is read and completed as a test says. */
import {
  CQE,
  QpState,
  type QueuePair,
  type QueuePairAttributes,
  type QueuePairInit,
  Ring,
  RQE,
  ringEntries,
  rqeBytes,
  SGE,
  SQE,
  sqeBytes,
  WcOpcode,
  WcStatus,
  WrFlags,
  WrOpcode,
} from '../../core/spi/index.js';

/** What a fake queue pair needs of its device and completion queues. */
export interface FakeEnds {
  readonly ended: string[];
}
export interface FakeCompletions {
  push(words: Readonly<Record<number, number>>): void;
}

/** A request or receive as the provider reads it from the ring. */
export interface FakeWork {
  readonly index: number;
  readonly opcode: number;
  readonly flags: number;
  readonly cookie: number;
  readonly remoteAddress: bigint;
  readonly rkey: number;
  readonly segments: readonly { address: bigint; length: number; lkey: number }[];
}

const WC_OF: Readonly<Record<number, number>> = {
  [WrOpcode.SEND]: WcOpcode.SEND,
  [WrOpcode.RDMA_WRITE]: WcOpcode.RDMA_WRITE,
  [WrOpcode.RDMA_READ]: WcOpcode.RDMA_READ,
};

export class ScriptedQueuePair implements QueuePair {
  readonly sendRing: Ring;
  readonly ownReceives: Ring;
  state: QpState = QpState.RESET;
  eventHandler;
  sendDoorbells = 0;
  receiveDoorbells = 0;
  destroyed = false;
  readonly modifications: QueuePairAttributes[] = [];
  /** Entries with an end: index of the next one without. */
  private sendsEnded = 0;
  private receivesEnded = 0;

  constructor(
    private readonly device: FakeEnds,
    readonly init: QueuePairInit,
    readonly qpn: number,
  ) {
    this.sendRing = Ring.allocate(ringEntries(init.maxSendWr), sqeBytes(init.maxSendSge));
    this.ownReceives = Ring.allocate(ringEntries(init.maxReceiveWr), rqeBytes(init.maxReceiveSge));
    this.eventHandler = init.onEvent;
  }

  get receiveRing(): Ring | undefined {
    return this.init.srq === undefined ? this.ownReceives : undefined;
  }

  get type(): QueuePairInit['type'] {
    return this.init.type;
  }

  ringSendDoorbell(): void {
    this.sendDoorbells++;
    if (this.state === QpState.ERR) this.flush();
    else if (this.state !== QpState.RTS) throw new Error(`doorbell in state ${this.state}`);
  }

  ringReceiveDoorbell(): void {
    this.receiveDoorbells++;
    if (this.state === QpState.ERR) this.flush();
  }

  modify(attributes: QueuePairAttributes): void {
    this.modifications.push(attributes);
    if (attributes.state === undefined) return;
    this.state = attributes.state;
    if (this.state === QpState.ERR) this.flush();
  }

  query(): QueuePairAttributes {
    return { state: this.state };
  }

  flightRecord(): readonly string[] {
    return ['RTS -> ERR'];
  }

  destroy(): void {
    this.destroyed = true;
    this.device.ended.push('qp');
  }

  /** Requests that the doorbell has shown and that have no end yet. */
  get work(): FakeWork[] {
    const list: FakeWork[] = [];
    for (let i = this.sendsEnded; i !== this.sendRing.producer; i = (i + 1) >>> 0) {
      list.push(this.readRequest(i));
    }
    return list;
  }

  get receives(): FakeWork[] {
    const list: FakeWork[] = [];
    for (let i = this.receivesEnded; i !== this.ownReceives.producer; i = (i + 1) >>> 0) {
      list.push(this.readReceive(i));
    }
    return list;
  }

  /** Ends the oldest request; a success of an unsignalled one leaves no completion. */
  completeSend(status: number = WcStatus.SUCCESS): void {
    const request = this.readRequest(this.sendsEnded);
    this.sendsEnded = (this.sendsEnded + 1) >>> 0;
    if (status === WcStatus.SUCCESS && (request.flags & WrFlags.SIGNALED) === 0) return;
    const at = this.sendRing.wordOf(request.index);
    const length = request.segments.reduce((sum, segment) => sum + segment.length, 0);
    (this.init.sendCq as unknown as FakeCompletions).push({
      [CQE.CONTROL]: status | ((WC_OF[request.opcode] ?? 0) << 8),
      [CQE.QPN]: this.qpn,
      [CQE.COOKIE_LO]: this.sendRing.words[at + SQE.COOKIE_LO] ?? 0,
      [CQE.COOKIE_HI]: this.sendRing.words[at + SQE.COOKIE_HI] ?? 0,
      [CQE.BYTE_LENGTH]: length,
      [CQE.WQE_INDEX]: request.index,
      [CQE.QP_CONTEXT]: this.init.context,
    });
    if (status !== WcStatus.SUCCESS && status !== WcStatus.WR_FLUSH_ERR) this.fail();
  }

  /** @param immediateOrKey what `wcFlags` speak of */
  completeReceive(
    lengthBytes: number,
    status: number = WcStatus.SUCCESS,
    wcFlags = 0,
    immediateOrKey = 0,
  ): void {
    const index = this.receivesEnded;
    if (index === this.ownReceives.producer) throw new Error('no receive is posted');
    this.receivesEnded = (index + 1) >>> 0;
    const at = this.ownReceives.wordOf(index);
    (this.init.receiveCq as unknown as FakeCompletions).push({
      [CQE.CONTROL]: status | (WcOpcode.RECV << 8) | (wcFlags << 16),
      [CQE.QPN]: this.qpn,
      [CQE.COOKIE_LO]: this.ownReceives.words[at + RQE.COOKIE_LO] ?? 0,
      [CQE.COOKIE_HI]: this.ownReceives.words[at + RQE.COOKIE_HI] ?? 0,
      [CQE.BYTE_LENGTH]: lengthBytes,
      [CQE.IMMEDIATE_OR_INVALIDATE]: immediateOrKey,
      [CQE.WQE_INDEX]: index,
      [CQE.QP_CONTEXT]: this.init.context,
    });
    if (status !== WcStatus.SUCCESS && status !== WcStatus.WR_FLUSH_ERR) this.fail();
  }

  private fail(): void {
    this.state = QpState.ERR;
    this.flush();
  }

  private flush(): void {
    while (this.sendsEnded !== this.sendRing.producer) this.completeSend(WcStatus.WR_FLUSH_ERR);
    while (this.receivesEnded !== this.ownReceives.producer) {
      this.completeReceive(0, WcStatus.WR_FLUSH_ERR);
    }
  }

  private readRequest(index: number): FakeWork {
    const { words } = this.sendRing;
    const at = this.sendRing.wordOf(index);
    const control = words[at + SQE.CONTROL] ?? 0;
    return {
      index,
      opcode: control & 0xff,
      flags: (control >>> 8) & 0xff,
      cookie: u64(words, at + SQE.COOKIE_LO, Number),
      remoteAddress: u64(words, at + SQE.REMOTE_ADDRESS_LO, BigInt),
      rkey: words[at + SQE.RKEY] ?? 0,
      segments: readSegments(words, at + SQE.SEGMENTS, (control >>> 16) & 0xff),
    };
  }

  private readReceive(index: number): FakeWork {
    const { words } = this.ownReceives;
    const at = this.ownReceives.wordOf(index);
    return {
      index,
      opcode: 0,
      flags: words[at + RQE.FLAGS] ?? 0,
      cookie: u64(words, at + RQE.COOKIE_LO, Number),
      remoteAddress: 0n,
      rkey: 0,
      segments: readSegments(words, at + RQE.SEGMENTS, words[at + RQE.NUM_SGE] ?? 0),
    };
  }
}

function u64<T>(words: Uint32Array, at: number, make: (value: bigint) => T): T {
  return make((BigInt(words[at + 1] ?? 0) << 32n) | BigInt(words[at] ?? 0));
}

function readSegments(words: Uint32Array, at: number, count: number): FakeWork['segments'] {
  return Array.from({ length: count }, (_, i) => {
    const first = at + i * SGE.WORDS;
    return {
      address: u64(words, first + SGE.ADDRESS_LO, BigInt),
      length: words[first + SGE.LENGTH] ?? 0,
      lkey: words[first + SGE.LKEY] ?? 0,
    };
  });
}
