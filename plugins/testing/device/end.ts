/** One end of a connection at the level of verbs: its objects, and access to its rings. */
import assert from 'node:assert/strict';
import {
  Access,
  type AsyncEventType,
  type CompletionQueue,
  CQE,
  type Device,
  type MemoryRegion,
  type ProtectionDomain,
  QpState,
  QpType,
  type QueuePair,
  type QueuePairInit,
  RQE,
  SGE,
  type SharedReceiveQueue,
  SQE,
  WrFlags,
  WrOpcode,
} from 'dapl/spi';

export const MEMORY_BYTES = 1 << 16;
const ALL = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC;

export interface EndOptions {
  readonly type?: QpType;
  /** Entries of each work queue; default 64. */
  readonly maxWr?: number;
  /** Entries of the completion queue; default 256. */
  readonly minEntries?: number;
  readonly access?: number;
  /** If given, the end receives from a shared receive queue with that many entries. */
  readonly sharedWr?: number;
}

/** A completion, read from the words of its entry. */
export interface Completion {
  readonly status: number;
  readonly opcode: number;
  readonly qpn: number;
  readonly cookie: number;
  readonly bytes: number;
  readonly immediate: number;
  readonly flags: number;
  readonly sourceQpn: number;
  readonly srqn: number;
  readonly index: number;
  readonly context: number;
}

export interface Piece {
  readonly offset: number;
  readonly length: number;
  /** Default: the key of the end's region. */
  readonly lkey?: number;
}

export interface Send {
  readonly opcode?: number;
  readonly pieces?: readonly Piece[];
  readonly signalled?: boolean;
  readonly solicited?: boolean;
  readonly cookie?: number;
  /** Immediate data, or the key to invalidate. */
  readonly immediate?: number;
  readonly remote?: { readonly address: bigint; readonly rkey: number };
  readonly inline?: Uint8Array;
  readonly compareAdd?: bigint;
  readonly swap?: bigint;
  readonly bind?: Bind;
  /** Datagrams: address handle, queue pair number and Q_Key. */
  readonly to?: { readonly handle: number; readonly qpn: number; readonly qkey: number };
}

/** Arguments of BIND_MW. */
export interface Bind {
  readonly window: number;
  readonly rkey: number;
  /** Offset in the end's region. */
  readonly offset: number;
  readonly length: number;
  readonly access: number;
}

/** Values of the words in which core keeps notes: a device must not change them. */
export const NOTES = { send: 0xa5, receive: 0xdead_beef } as const;

export const QKEY = 0x1234_5678;

export class End {
  readonly pd: ProtectionDomain;
  readonly cq: CompletionQueue;
  readonly srq: SharedReceiveQueue | undefined;
  readonly qp: QueuePair;
  readonly memory: Uint8Array;
  readonly region: MemoryRegion;
  /** Events of the queue pair and of its completion queue, in order. */
  readonly events: AsyncEventType[] = [];
  readonly cqEvents: AsyncEventType[] = [];
  notified = 0;
  /** True during a call of this end. */
  inCall = false;
  private readonly init: QueuePairInit;

  constructor(
    readonly device: Device,
    options: EndOptions = {},
  ) {
    const { maxWr = 64, minEntries = 256, access = ALL, type = QpType.RC, sharedWr } = options;
    this.pd = device.createProtectionDomain();
    this.cq = device.createCompletionQueue({
      minEntries,
      onNotify: () => {
        assert.equal(this.inCall, false, 'a notification inside a call');
        this.notified++;
      },
      onEvent: (event) => void this.cqEvents.push(event),
    });
    this.srq =
      sharedWr === undefined
        ? undefined
        : device.createSharedReceiveQueue?.({
            pd: this.pd,
            maxWr: sharedWr,
            maxSge: 1,
            onEvent: (event) => void this.events.push(event),
          });
    this.init = {
      type,
      pd: this.pd,
      sendCq: this.cq,
      receiveCq: this.cq,
      ...(this.srq && { srq: this.srq }),
      maxSendWr: maxWr,
      maxReceiveWr: maxWr,
      maxSendSge: 2,
      maxReceiveSge: 2,
      maxInlineBytes: Math.min(16, device.attributes.maxInlineBytes),
      context: 4711,
      onEvent: (event) => void this.events.push(event),
    };
    this.qp = device.createQueuePair(this.init);
    this.memory = new Uint8Array(device.allocate(MEMORY_BYTES));
    this.region = this.pd.registerMemory(this.memory, access);
  }

  /** Creates another queue pair on the same objects. */
  queuePair(more: Partial<QueuePairInit> = {}): QueuePair {
    return this.device.createQueuePair({ ...this.init, ...more });
  }

  toInit(qp = this.qp): void {
    const unconnected = qp.type === QpType.UD;
    qp.modify({
      state: QpState.INIT,
      pkeyIndex: 0,
      portNumber: this.device.attributes.portNumber,
      ...(unconnected ? { qkey: QKEY } : { accessFlags: ALL }),
    });
  }

  toRtr(peer: End): void {
    const { qp, device } = this;
    const { type } = qp;
    const reads = Math.min(device.attributes.maxResponderResources, 4);
    qp.modify({
      state: QpState.RTR,
      ...(type !== QpType.UD && {
        addressVector: { gid: peer.device.gids[0]!, localGidIndex: 0 },
        pathMtuBytes: Math.min(
          device.attributes.activeMtuBytes,
          peer.device.attributes.activeMtuBytes,
        ),
        destinationQpn: peer.qp.qpn,
        receivePsn: 100,
      }),
      ...(type === QpType.RC && { maxDestRdAtomic: reads, minRnrTimer: 12 }),
    });
  }

  toRts(): void {
    const { qp, device } = this;
    const reads = Math.min(device.attributes.maxInitiatorDepth, 4);
    qp.modify({
      state: QpState.RTS,
      sendPsn: 100,
      ...(qp.type === QpType.RC && {
        timeout: 14,
        retryCount: 7,
        rnrRetryCount: 7,
        maxRdAtomic: reads,
      }),
    });
  }

  address(offset = 0): bigint {
    return this.region.iova + BigInt(offset);
  }

  /** Fills a range with bytes that depend on the offset and the seed. */
  fill(offset: number, length: number, seed: number): Uint8Array {
    const bytes = this.memory.subarray(offset, offset + length);
    for (let i = 0; i < length; i++) bytes[i] = (i * 31 + seed * 17 + (i >>> 8)) & 0xff;
    return bytes;
  }

  /** Posts requests with one doorbell. */
  send(...requests: readonly Send[]): void {
    const { sendRing } = this.qp;
    for (const request of requests) {
      this.write(sendRing.wordOf(sendRing.producer), request);
      sendRing.producer = (sendRing.producer + 1) >>> 0;
    }
    this.call(() => this.qp.ringSendDoorbell());
  }

  receive(...pieces: readonly (Piece & { readonly cookie?: number })[]): void {
    const ring = this.qp.receiveRing!;
    for (const piece of pieces) {
      this.writeReceive(ring.words, ring.wordOf(ring.producer), piece);
      ring.producer = (ring.producer + 1) >>> 0;
    }
    this.call(() => this.qp.ringReceiveDoorbell());
  }

  /** Posts receives to the shared receive queue, each in the slot with this number. */
  receiveShared(...given: readonly (Piece & { readonly slot: number })[]): void {
    const { slots, submissions } = this.srq!.ring;
    for (const { slot, ...piece } of given) {
      this.writeReceive(slots.words, slots.wordOf(slot), { ...piece, cookie: slot });
      submissions.words[submissions.wordOf(submissions.producer)] = slot;
      submissions.producer = (submissions.producer + 1) >>> 0;
    }
    this.call(() => this.srq!.ringDoorbell());
  }

  /** Takes all new completions. */
  take(): Completion[] {
    const taken: Completion[] = [];
    for (;;) {
      const readable = this.call(() => this.cq.poll());
      if (readable === 0) return taken;
      const { ring } = this.cq;
      for (let i = 0; i < readable; i++) {
        const at = ring.wordOf(ring.consumer + i);
        const word = (which: number): number => ring.words[at + which]!;
        const control = word(CQE.CONTROL);
        taken.push({
          status: control & 0xff,
          opcode: (control >>> 8) & 0xff,
          qpn: word(CQE.QPN),
          cookie: word(CQE.COOKIE_LO),
          bytes: word(CQE.BYTE_LENGTH),
          immediate: word(CQE.IMMEDIATE_OR_INVALIDATE),
          flags: (control >>> 16) & 0xff,
          sourceQpn: word(CQE.SOURCE_QPN),
          srqn: word(CQE.SRQN),
          index: word(CQE.WQE_INDEX),
          context: word(CQE.QP_CONTEXT),
        });
      }
      ring.consumer = (ring.consumer + readable) >>> 0;
    }
  }

  arm(solicitedOnly = false): void {
    this.call(() => this.cq.arm(solicitedOnly));
  }

  private call<T>(run: () => T): T {
    this.inCall = true;
    try {
      return run();
    } finally {
      this.inCall = false;
    }
  }

  private write(at: number, request: Send): void {
    const { words } = this.qp.sendRing;
    const { opcode = WrOpcode.SEND, pieces = [], signalled = true, solicited = false } = request;
    const { inline, remote, to, compareAdd = 0n, swap = 0n } = request;
    const flags =
      (signalled ? WrFlags.SIGNALED : 0) |
      (solicited ? WrFlags.SOLICITED : 0) |
      (inline ? WrFlags.INLINE : 0);
    const segments = inline ? 0 : pieces.length;
    words[at + SQE.CONTROL] = opcode | (flags << 8) | (segments << 16) | (NOTES.send << 24);
    words[at + SQE.INLINE_LENGTH] = inline?.length ?? 0;
    words[at + SQE.COOKIE_LO] = request.cookie ?? 0;
    words[at + SQE.COOKIE_HI] = 0;
    words[at + SQE.IMMEDIATE_OR_INVALIDATE] = request.immediate ?? 0;
    if (remote !== undefined) {
      words[at + SQE.REMOTE_ADDRESS_LO] = Number(remote.address & 0xffffffffn);
      words[at + SQE.REMOTE_ADDRESS_HI] = Number(remote.address >> 32n);
      words[at + SQE.RKEY] = remote.rkey;
    }
    words[at + SQE.COMPARE_ADD_LO] = Number(compareAdd & 0xffffffffn);
    words[at + SQE.COMPARE_ADD_HI] = Number(compareAdd >> 32n);
    words[at + SQE.SWAP_LO] = Number(swap & 0xffffffffn);
    words[at + SQE.SWAP_HI] = Number(swap >> 32n);
    if (request.bind !== undefined) this.writeBind(words, at, request.bind);
    if (to !== undefined) words.set([to.handle, to.qpn, to.qkey], at + SQE.ADDRESS_HANDLE);
    if (inline !== undefined) {
      const { buffer, byteOffset } = words;
      new Uint8Array(buffer, byteOffset).set(inline, (at + SQE.SEGMENTS) * 4);
      return;
    }
    pieces.forEach((piece, i) => this.writePiece(words, at + SQE.SEGMENTS + i * SGE.WORDS, piece));
  }

  private writeBind(words: Uint32Array, at: number, bind: Bind): void {
    const address = this.address(bind.offset);
    words[at + SQE.REMOTE_ADDRESS_LO] = Number(address & 0xffffffffn);
    words[at + SQE.REMOTE_ADDRESS_HI] = Number(address >> 32n);
    words[at + SQE.BIND_LENGTH_LO] = bind.length;
    words[at + SQE.BIND_LENGTH_HI] = 0;
    words[at + SQE.BIND_WINDOW] = bind.window;
    words[at + SQE.BIND_REGION_LKEY] = this.region.lkey;
    words[at + SQE.BIND_ACCESS] = bind.access;
    words[at + SQE.BIND_RKEY] = bind.rkey;
  }

  private writeReceive(
    words: Uint32Array,
    at: number,
    { cookie = 0, ...piece }: Piece & { readonly cookie?: number },
  ): void {
    words.set([1, NOTES.receive, cookie, 0], at + RQE.NUM_SGE);
    this.writePiece(words, at + RQE.SEGMENTS, piece);
  }

  private writePiece(words: Uint32Array, at: number, piece: Piece): void {
    const { offset, length, lkey = this.region.lkey } = piece;
    const address = this.address(offset);
    words.set([Number(address & 0xffffffffn), Number(address >> 32n), length, lkey], at);
  }
}

/** Lets both devices work until the condition holds. */
export async function until(
  world: { readonly patienceMs: number; settle(): Promise<void> },
  isSo: () => boolean,
  what: string,
): Promise<void> {
  for (const end = Date.now() + world.patienceMs; !isSo(); await world.settle()) {
    assert.ok(Date.now() < end, `waited in vain for ${what}`);
  }
}
