/**
 * QP1 of a device as rings and buffers (IBTA 13.5.3.3): writes entries, reads completions. The port
 * decides what the entries are for (gsi-port.ts).
 */
import {
  Access,
  type AsyncEventType,
  type CompletionQueue,
  CQE,
  type Device,
  GRH_LENGTH,
  GSI_QKEY,
  MAD_BYTES,
  type MemoryRegion,
  type ProtectionDomain,
  QpState,
  QpType,
  type QueuePair,
  type Ring,
  RQE,
  SGE,
  SpiError,
  SQE,
  type WcStatus,
  WrFlags,
  WrOpcode,
} from '../../core/spi/index.js';

export interface Qp1Options {
  readonly device: Device;
  readonly sendDepth: number;
  readonly receiveDepth: number;
  readonly onNotify: () => void;
  readonly onEvent: (event: AsyncEventType) => void;
}

/** A completion: one object, which each `take` fills again. */
export interface Qp1Completion {
  isReceive: boolean;
  status: WcStatus;
  /** Index of the completed entry. */
  index: number;
  byteLength: number;
  sourceQpn: number;
  /** UDP source port; 0 if the device does not report it. */
  sourcePort: number;
}

/** Destination of an entry. */
export interface Qp1Address {
  readonly handle: number;
  readonly qpn: number;
  readonly qkey: number;
}

const SEND_SLOT_BYTES = MAD_BYTES;
const RECEIVE_SLOT_BYTES = 320;
/** Bytes of a receive for one MAD. */
export const RECEIVED_BYTES = GRH_LENGTH + MAD_BYTES;
const SEND_COOKIE = 0;
const RECEIVE_COOKIE = 1;

export class Qp1 {
  readonly pd: ProtectionDomain;
  private readonly cq: CompletionQueue;
  private readonly qp: QueuePair;
  private readonly receiveRing: Ring;
  private readonly receiveDepth: number;
  private readonly sendMr: MemoryRegion;
  private readonly receiveMr: MemoryRegion;
  private readonly sendArena: Uint8Array;
  private readonly receiveArena: Uint8Array;
  private readonly completion: Qp1Completion = {
    isReceive: false,
    status: 0,
    index: 0,
    byteLength: 0,
    sourceQpn: 0,
    sourcePort: 0,
  };

  /** @throws SpiError if the device refuses QP1 */
  constructor(options: Qp1Options) {
    const { device, sendDepth, receiveDepth, onNotify, onEvent } = options;
    this.pd = device.createProtectionDomain();
    const minEntries = sendDepth + receiveDepth;
    this.cq = device.createCompletionQueue({ minEntries, onNotify, onEvent });
    this.qp = createQp1(options, this.pd, this.cq);
    if (!this.qp.receiveRing) throw new SpiError('ENODEV', 'QP1 has no receive ring');
    this.receiveRing = this.qp.receiveRing;
    this.sendArena = new Uint8Array(device.allocate(this.qp.sendRing.entries * SEND_SLOT_BYTES));
    const receiveBytes = this.receiveRing.entries * RECEIVE_SLOT_BYTES;
    this.receiveArena = new Uint8Array(device.allocate(receiveBytes));
    this.sendMr = this.pd.registerMemory(this.sendArena, 0, 0n);
    this.receiveMr = this.pd.registerMemory(this.receiveArena, Access.LOCAL_WRITE, 0n);
    this.receiveDepth = receiveDepth;
    this.start();
    this.cq.arm(false);
  }

  get state(): QpState {
    return this.qp.state;
  }

  get receiveSlots(): number {
    return this.receiveRing.entries;
  }

  /** The slot of a send entry: unique among outstanding entries. */
  slotOf(index: number): number {
    return index & this.qp.sendRing.mask;
  }

  /** Copies the MAD into the slot of the next entry and writes it; returns the slot. */
  writeSend(mad: Uint8Array, { handle, qpn, qkey }: Qp1Address): number {
    const ring = this.qp.sendRing;
    const index = ring.producer;
    const slot = this.slotOf(index);
    const { words } = ring;
    const at = ring.wordOf(index);
    this.sendArena.set(mad, slot * SEND_SLOT_BYTES);
    words.fill(0, at, at + SQE.SEGMENTS);
    words[at + SQE.CONTROL] = WrOpcode.SEND | (WrFlags.SIGNALED << 8) | (1 << 16);
    words[at + SQE.COOKIE_LO] = index;
    words[at + SQE.COOKIE_HI] = SEND_COOKIE;
    words[at + SQE.ADDRESS_HANDLE] = handle;
    words[at + SQE.REMOTE_QPN] = qpn;
    words[at + SQE.REMOTE_QKEY] = qkey;
    const segment = at + SQE.SEGMENTS;
    writeSegment(words, segment, slot * SEND_SLOT_BYTES, MAD_BYTES, this.sendMr.lkey);
    ring.producer = index + 1;
    return slot;
  }

  writeReceive(): void {
    const ring = this.receiveRing;
    const index = ring.producer;
    const { words } = ring;
    const at = ring.wordOf(index);
    words[at + RQE.NUM_SGE] = 1;
    words[at + RQE.FLAGS] = 0;
    words[at + RQE.COOKIE_LO] = index;
    words[at + RQE.COOKIE_HI] = RECEIVE_COOKIE;
    const offset = (index & ring.mask) * RECEIVE_SLOT_BYTES;
    writeSegment(words, at + RQE.SEGMENTS, offset, RECEIVED_BYTES, this.receiveMr.lkey);
    ring.producer = index + 1;
  }

  /** GRH area and MAD of a completed receive; valid until it is posted again. */
  received(index: number): Uint8Array {
    const at = (index & this.receiveRing.mask) * RECEIVE_SLOT_BYTES;
    return this.receiveArena.subarray(at, at + RECEIVED_BYTES);
  }

  /** @throws SpiError if the device is gone */
  ringSends(): void {
    this.qp.ringSendDoorbell();
  }

  /** @throws SpiError if the device is gone */
  ringReceives(): void {
    this.qp.ringReceiveDoorbell();
  }

  /** Number of completions that `take` will find. @throws SpiError('EIO') if the device is gone */
  poll(): number {
    return this.cq.poll();
  }

  /** @throws SpiError if the device cannot arm */
  arm(): void {
    this.cq.arm(false);
  }

  /** Takes a completion. Cookies tell sends from receives: a failed completion has no opcode. */
  take(): Readonly<Qp1Completion> {
    const { completion } = this;
    const { ring } = this.cq;
    const { words } = ring;
    const at = ring.wordOf(ring.consumer);
    completion.status = ((words[at + CQE.CONTROL] ?? 0) & 0xff) as WcStatus;
    completion.index = words[at + CQE.COOKIE_LO] ?? 0;
    completion.isReceive = words[at + CQE.COOKIE_HI] === RECEIVE_COOKIE;
    completion.byteLength = words[at + CQE.BYTE_LENGTH] ?? 0;
    completion.sourceQpn = words[at + CQE.SOURCE_QPN] ?? 0;
    completion.sourcePort = words[at + CQE.SOURCE_PORT] ?? 0;
    ring.consumer += 1;
    return completion;
  }

  /** Moves QP1 from SQE back to RTS. @throws SpiError */
  resume(): void {
    this.qp.modify({ state: QpState.RTS, currentState: QpState.SQE });
  }

  /** Moves QP1 to RESET: posted entries are dropped; completions stay. @throws SpiError */
  reset(): void {
    this.qp.modify({ state: QpState.RESET });
  }

  /** Moves QP1 from RESET to RTS, with all its receives. @throws SpiError */
  start(): void {
    this.qp.modify({ state: QpState.INIT, pkeyIndex: 0, qkey: GSI_QKEY });
    for (let i = 0; i < this.receiveDepth; i++) this.writeReceive();
    this.qp.ringReceiveDoorbell();
    this.qp.modify({ state: QpState.RTR });
    this.qp.modify({ state: QpState.RTS, sendPsn: 0 });
  }

  /** Moves QP1 to ERR: all posted entries complete as flushed. @throws SpiError */
  flush(): void {
    this.qp.modify({ state: QpState.ERR });
  }

  /**
   * Steps that destroy QP1, in order. Each may fail if the device has destroyed its object already.
   */
  endSteps(): readonly (() => void)[] {
    return [
      () => this.qp.destroy(),
      () => this.cq.destroy(),
      () => this.sendMr.destroy(),
      () => this.receiveMr.destroy(),
    ];
  }
}

function createQp1(
  { device, sendDepth, receiveDepth, onEvent }: Qp1Options,
  pd: ProtectionDomain,
  cq: CompletionQueue,
): QueuePair {
  return device.createQueuePair({
    type: QpType.GSI,
    pd,
    sendCq: cq,
    receiveCq: cq,
    maxSendWr: sendDepth,
    maxReceiveWr: receiveDepth,
    maxSendSge: 1,
    maxReceiveSge: 1,
    maxInlineBytes: 0,
    context: 0,
    onEvent,
  });
}

function writeSegment(
  words: Uint32Array,
  at: number,
  offset: number,
  lengthBytes: number,
  lkey: number,
): void {
  words[at + SGE.ADDRESS_LO] = offset;
  words[at + SGE.ADDRESS_HI] = 0;
  words[at + SGE.LENGTH] = lengthBytes;
  words[at + SGE.LKEY] = lkey;
}
