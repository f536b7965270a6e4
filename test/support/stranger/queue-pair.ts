/** A reliable queue pair of a stranger's device: its peer is an object of the same process. */
import {
  Access,
  AsyncEventType,
  checkQpTransition,
  nameOf,
  QpState,
  QpType,
  type QueuePair,
  type QueuePairAttributes,
  type QueuePairInit,
  Ring,
  ringEntries,
  RQE,
  rqeBytes,
  SGE,
  SQE,
  sqeBytes,
  WcFlags,
  WcOpcode,
  WcStatus,
  WrFlags,
  WrOpcode,
} from 'dapl/spi';
import type { StrangerCompletionQueue } from './completion-queue.js';
import type { StrangerDevice } from './device.js';
import type { Domain } from './memory.js';

const WC_OPCODE: Readonly<Record<number, WcOpcode>> = {
  [WrOpcode.SEND]: WcOpcode.SEND,
  [WrOpcode.SEND_WITH_IMM]: WcOpcode.SEND,
  [WrOpcode.RDMA_WRITE]: WcOpcode.RDMA_WRITE,
  [WrOpcode.RDMA_WRITE_WITH_IMM]: WcOpcode.RDMA_WRITE,
  [WrOpcode.RDMA_READ]: WcOpcode.RDMA_READ,
};
/** Seven RNR retries are endless; fewer have given up when the receiver is still not ready then. */
const RNR_US = 50_000;

export class StrangerQueuePair implements QueuePair {
  readonly type = QpType.RC;
  readonly sendRing: Ring;
  readonly receiveRing: Ring;
  state: QpState = QpState.RESET;
  eventHandler: (event: AsyncEventType) => void;
  destroyed = false;
  private attributes: QueuePairAttributes = {};
  private notReadySinceUs = Infinity;
  private toldOfPeer = false;

  constructor(
    readonly device: StrangerDevice,
    readonly qpn: number,
    readonly init: QueuePairInit,
  ) {
    const { maxSendWr, maxSendSge, maxInlineBytes, maxReceiveWr, maxReceiveSge } = init;
    const entry = sqeBytes(maxSendSge, maxInlineBytes);
    this.sendRing = Ring.allocate(ringEntries(maxSendWr), entry);
    this.receiveRing = Ring.allocate(ringEntries(maxReceiveWr), rqeBytes(maxReceiveSge));
    this.eventHandler = init.onEvent;
    this.domain.children += 1;
    this.sendCq.users += 1;
    this.receiveCq.users += 1;
  }

  get sendCq(): StrangerCompletionQueue {
    return this.init.sendCq as StrangerCompletionQueue;
  }

  get receiveCq(): StrangerCompletionQueue {
    return this.init.receiveCq as StrangerCompletionQueue;
  }

  get domain(): Domain {
    return this.init.pd as Domain;
  }

  ringSendDoorbell(): void {
    this.device.wake();
  }

  ringReceiveDoorbell(): void {
    this.device.wake();
  }

  modify(attributes: QueuePairAttributes): void {
    const to = checkQpTransition(this.type, this.state, attributes);
    this.state = to;
    this.attributes = { ...(to === QpState.RESET ? {} : this.attributes), ...attributes };
    if (to === QpState.RESET) {
      this.sendRing.consumer = this.sendRing.producer;
      this.receiveRing.consumer = this.receiveRing.producer;
      this.toldOfPeer = false;
      this.notReadySinceUs = Infinity;
    }
    this.device.wake();
  }

  query(): Readonly<QueuePairAttributes> {
    return { ...this.attributes, state: this.state };
  }

  flightRecord(): readonly string[] {
    return [`queue pair ${this.qpn} is in ${nameOf(QpState, this.state)}`];
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.state = QpState.RESET;
    this.domain.children -= 1;
    this.sendCq.users -= 1;
    this.receiveCq.users -= 1;
    this.device.onDestroyed(this);
    if (this.device.mutant === 'forgets to end its rings') return;
    this.sendRing.end();
    this.receiveRing.end();
  }

  /** Does what can be done; true when anything moved. */
  work(): boolean {
    if (this.state === QpState.ERR) return this.flush();
    let moved = false;
    while (this.state === QpState.RTS && this.sendRing.length > 0) {
      if (!this.one(this.sendRing.consumer)) break;
      moved = true;
    }
    return moved;
  }

  /** Carries out a request; false when it has to wait. */
  private one(index: number): boolean {
    const { words } = this.sendRing;
    const at = this.sendRing.wordOf(index);
    const control = words[at + SQE.CONTROL]!;
    const status = this.carryOut(at, control);
    if (status === undefined) return false;
    this.completeSend(index, at, control, status);
    if (status !== WcStatus.SUCCESS && this.device.mutant !== 'goes on behind a failure') {
      this.toError();
    }
    return true;
  }

  toError(): void {
    if (this.state === QpState.RESET) return;
    this.state = QpState.ERR;
    this.device.wake();
  }

  /** By what its peer asked for: nothing here has failed, so an event tells of it. */
  private broken(event: AsyncEventType): void {
    this.toError();
    this.device.defer(() => this.eventHandler(event));
  }

  private carryOut(at: number, control: number): WcStatus | undefined {
    const { words } = this.sendRing;
    const opcode = control & 0xff;
    const peer = this.device.peerOf(this.attributes);
    if (!(opcode in WC_OPCODE)) return WcStatus.LOC_QP_OP_ERR;
    const isRead = opcode === WrOpcode.RDMA_READ;
    const local = this.localPieces(at, control, isRead ? Access.LOCAL_WRITE : 0);
    if (local === undefined) return WcStatus.LOC_PROT_ERR;
    if (peer === undefined || peer.state < QpState.RTR || peer.state === QpState.ERR) {
      return WcStatus.RETRY_EXC_ERR;
    }
    peer.hears();
    const length = local.reduce((sum, piece) => sum + piece.length, 0);
    const takesReceive = opcode !== WrOpcode.RDMA_WRITE && !isRead;
    if (takesReceive && peer.receiveRing.length === 0) return this.notReady();
    this.notReadySinceUs = Infinity;
    const isSend = opcode === WrOpcode.SEND || opcode === WrOpcode.SEND_WITH_IMM;
    if (!isSend) {
      const remote = peer.remoteBytes(words, at, length, isRead);
      if (remote === undefined) {
        peer.broken(AsyncEventType.QP_ACCESS_ERR);
        return WcStatus.REM_ACCESS_ERR;
      }
      if (isRead) scatter(remote, local);
      else remote.set(gather(local).subarray(0, remote.length));
    }
    const immediate =
      opcode === WrOpcode.SEND_WITH_IMM || opcode === WrOpcode.RDMA_WRITE_WITH_IMM
        ? words[at + SQE.IMMEDIATE_OR_INVALIDATE]!
        : undefined;
    if (!takesReceive) return WcStatus.SUCCESS;
    const isSolicited = ((control >>> 8) & WrFlags.SOLICITED) !== 0;
    return peer.take(isSend ? gather(local) : undefined, length, immediate, isSolicited);
  }

  private notReady(): WcStatus | undefined {
    const nowUs = this.device.clock.now();
    this.notReadySinceUs = Math.min(this.notReadySinceUs, nowUs);
    if ((this.attributes.rnrRetryCount ?? 7) === 7) return undefined;
    if (nowUs - this.notReadySinceUs > RNR_US) return WcStatus.RNR_RETRY_EXC_ERR;
    this.device.wakeAt(this.notReadySinceUs + RNR_US + 1);
    return undefined;
  }

  /** The peer has sent something. */
  private hears(): void {
    if (this.toldOfPeer || this.state !== QpState.RTR) return;
    this.toldOfPeer = true;
    this.device.defer(() => this.eventHandler(AsyncEventType.COMM_EST));
  }

  private remoteBytes(
    words: Uint32Array,
    at: number,
    length: number,
    isRead: boolean,
  ): Uint8Array | undefined {
    const address = addressAt(words, at + SQE.REMOTE_ADDRESS_LO);
    const access = isRead ? Access.REMOTE_READ : Access.REMOTE_WRITE;
    const { device, domain, attributes } = this;
    if (((attributes.accessFlags ?? 0) & access) === 0) return undefined;
    return device.memory.find(domain, words[at + SQE.RKEY]!, address, length, access);
  }

  /** A message takes the oldest receive. */
  private take(
    payload: Uint8Array | undefined,
    length: number,
    immediate: number | undefined,
    isSolicited: boolean,
  ): WcStatus {
    const { receiveRing, receiveCq } = this;
    const index = receiveRing.consumer;
    const at = receiveRing.wordOf(index);
    receiveRing.consumer = (index + 1) >>> 0;
    const pieces = this.receivePieces(at);
    const room = pieces?.reduce((sum, piece) => sum + piece.length, 0) ?? 0;
    const fits = payload === undefined || payload.length <= room;
    const status = pieces === undefined ? WcStatus.LOC_PROT_ERR : WcStatus.LOC_LEN_ERR;
    if (fits && pieces !== undefined && payload !== undefined) scatter(payload, pieces);
    const isGood = fits && pieces !== undefined;
    const opcode = payload === undefined ? WcOpcode.RECV_RDMA_WITH_IMM : WcOpcode.RECV;
    receiveCq.add(
      {
        status: isGood ? WcStatus.SUCCESS : status,
        opcode: isGood ? opcode : WcOpcode.RECV,
        qpn: this.qpn,
        cookie: cookieAt(receiveRing.words, at + RQE.COOKIE_LO),
        index,
        context: this.init.context,
        bytes: length,
        ...(immediate !== undefined && { immediate, flags: WcFlags.WITH_IMM }),
      },
      isSolicited,
    );
    if (isGood) return WcStatus.SUCCESS;
    this.broken(AsyncEventType.QP_REQ_ERR);
    return WcStatus.REM_INV_REQ_ERR;
  }

  private completeSend(index: number, at: number, control: number, status: WcStatus): void {
    this.sendRing.consumer = (index + 1) >>> 0;
    const isSignalled = ((control >>> 8) & WrFlags.SIGNALED) !== 0;
    if (!isSignalled && status === WcStatus.SUCCESS) return;
    const { words } = this.sendRing;
    const completion = {
      status,
      opcode: WC_OPCODE[control & 0xff] ?? WcOpcode.SEND,
      qpn: this.qpn,
      cookie: cookieAt(words, at + SQE.COOKIE_LO),
      index,
      context: this.init.context,
      bytes: status === WcStatus.SUCCESS ? this.bytesOf(at, control) : 0,
    };
    this.sendCq.add(completion);
    if (this.device.mutant === 'completes twice') this.sendCq.add(completion);
  }

  private bytesOf(at: number, control: number): number {
    const { words } = this.sendRing;
    if (((control >>> 8) & WrFlags.INLINE) !== 0) return words[at + SQE.INLINE_LENGTH]!;
    let bytes = 0;
    for (let i = 0; i < ((control >>> 16) & 0xff); i++) {
      bytes += words[at + SQE.SEGMENTS + i * SGE.WORDS + SGE.LENGTH]!;
    }
    return bytes;
  }

  private flush(): boolean {
    const { sendRing, receiveRing, device } = this;
    let moved = false;
    for (; sendRing.length > 0; moved = true) {
      const index = sendRing.consumer;
      const at = sendRing.wordOf(index);
      this.completeSend(index, at, sendRing.words[at + SQE.CONTROL]!, WcStatus.WR_FLUSH_ERR);
    }
    if (device.mutant === 'forgets to flush receives') return moved;
    for (; receiveRing.length > 0; moved = true) {
      const index = receiveRing.consumer;
      receiveRing.consumer = (index + 1) >>> 0;
      this.receiveCq.add({
        status: WcStatus.WR_FLUSH_ERR,
        opcode: WcOpcode.RECV,
        qpn: this.qpn,
        cookie: cookieAt(receiveRing.words, receiveRing.wordOf(index) + RQE.COOKIE_LO),
        index,
        context: this.init.context,
      });
    }
    return moved;
  }

  private localPieces(at: number, control: number, access: number): Uint8Array[] | undefined {
    const { words } = this.sendRing;
    if (((control >>> 8) & WrFlags.INLINE) !== 0) {
      const first = words.byteOffset + (at + SQE.SEGMENTS) * 4;
      return [new Uint8Array(words.buffer, first, words[at + SQE.INLINE_LENGTH]).slice()];
    }
    return this.pieces(words, at + SQE.SEGMENTS, (control >>> 16) & 0xff, access);
  }

  private receivePieces(at: number): Uint8Array[] | undefined {
    const { words } = this.receiveRing;
    return this.pieces(words, at + RQE.SEGMENTS, words[at + RQE.NUM_SGE]!, Access.LOCAL_WRITE);
  }

  private pieces(
    words: Uint32Array,
    first: number,
    count: number,
    access: number,
  ): Uint8Array[] | undefined {
    const found: Uint8Array[] = [];
    for (let i = 0; i < count; i++) {
      const at = first + i * SGE.WORDS;
      const length = words[at + SGE.LENGTH]!;
      if (length === 0) continue;
      const address = addressAt(words, at + SGE.ADDRESS_LO);
      const { device, domain } = this;
      const piece = device.memory.find(domain, words[at + SGE.LKEY]!, address, length, access);
      if (piece === undefined) return undefined;
      found.push(piece);
    }
    return found;
  }
}

function addressAt(words: Uint32Array, at: number): bigint {
  return BigInt(words[at]!) | (BigInt(words[at + 1]!) << 32n);
}

function cookieAt(words: Uint32Array, at: number): [number, number] {
  return [words[at]!, words[at + 1]!];
}

function gather(pieces: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(pieces));
}

function scatter(from: Uint8Array, pieces: readonly Uint8Array[]): void {
  let at = 0;
  for (const piece of pieces) {
    piece.set(from.subarray(at, at + piece.length));
    at += piece.length;
  }
}
