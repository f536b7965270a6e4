/**
 * Queues of the fake device. QP1 is real as far as its rings go: entries are read, completions
 * written; other queue pairs only have states.
 */
import {
  type AsyncEventType,
  type CompletionQueue,
  type CompletionQueueInit,
  CQE,
  CQE_BYTES,
  type Gid,
  GRH_LENGTH,
  GSI_QPN,
  isIpv4Gid,
  MAD_BYTES,
  nameOf,
  QpState,
  type QpType,
  type QueuePair,
  type QueuePairAttributes,
  type QueuePairEventHandler,
  type QueuePairInit,
  Ring,
  ringEntries,
  RQE,
  rqeBytes,
  SGE,
  SpiError,
  SQE,
  sqeBytes,
  WcOpcode,
  WcStatus,
} from '../../core/spi/index.js';
import type { FakeDevice } from './fake-gsi-device.js';

export class FakeCompletionQueue implements CompletionQueue {
  readonly ring: Ring;
  private armed = false;
  private destroyed = false;

  constructor(
    private readonly device: FakeDevice,
    private readonly init: CompletionQueueInit,
  ) {
    this.ring = Ring.allocate(ringEntries(init.minEntries), CQE_BYTES);
  }

  poll(): number {
    this.device.checkAlive();
    return this.ring.length;
  }

  /** Nothing that comes here is solicited. */
  arm(solicitedOnly: boolean): void {
    this.device.checkAlive();
    this.armed = !solicitedOnly;
  }

  setPolling(): void {
    // Events only.
  }

  resize(): void {
    throw new SpiError('EOPNOTSUPP', 'the fake does not resize');
  }

  destroy(): void {
    this.destroyed = true;
    this.device.liveObjects--;
  }

  push(words: Partial<Record<keyof typeof CQE, number>>): void {
    const { ring } = this;
    const at = ring.wordOf(ring.producer);
    ring.words.fill(0, at, at + CQE.WORDS);
    for (const [name, value] of Object.entries(words)) {
      ring.words[at + CQE[name as keyof typeof CQE]] = value;
    }
    ring.producer += 1;
    if (!this.armed) return;
    this.armed = false;
    this.device.network.world.defer(() => this.destroyed || this.init.onNotify());
  }
}

export class FakeQueuePair implements QueuePair {
  readonly type: QpType;
  readonly sendRing: Ring;
  readonly receiveRing: Ring;
  readonly modified: QueuePairAttributes[] = [];
  readonly forwarded: AsyncEventType[] = [];
  eventHandler: QueuePairEventHandler;
  state: QpState = QpState.RESET;
  destroyed = false;
  /** Completions wait while true: a response can overtake them. */
  holdCompletions = false;
  /** The status of the next sends, in order; after that all succeed. */
  readonly sendStatuses: WcStatus[] = [];
  /** UDP port that what arrives has come from. */
  sourcePort = 0;
  /** Thrown by the next `modify` to that state. */
  refuse: QpState | undefined;
  private readonly held: (() => void)[] = [];

  constructor(
    private readonly device: FakeDevice,
    protected readonly init: QueuePairInit,
    readonly qpn: number,
  ) {
    this.type = init.type;
    this.sendRing = Ring.allocate(ringEntries(init.maxSendWr), sqeBytes(init.maxSendSge));
    this.receiveRing = Ring.allocate(ringEntries(init.maxReceiveWr), rqeBytes(init.maxReceiveSge));
    this.eventHandler = (event) => {
      this.forwarded.push(event);
      init.onEvent(event);
    };
  }

  ringReceiveDoorbell(): void {
    // Receives are looked at when something arrives.
  }

  ringSendDoorbell(): void {
    const { sendRing } = this;
    while (sendRing.length > 0) {
      const index = sendRing.consumer;
      sendRing.consumer += 1;
      const status = this.statusOf();
      if (status === WcStatus.SUCCESS) this.transmit(index);
      this.complete(() => this.completeSend(index, status));
    }
  }

  modify(attributes: QueuePairAttributes): void {
    const { state } = attributes;
    if (this.destroyed) throw new SpiError('EINVAL', 'destroyed');
    if (state !== undefined && state === this.refuse) {
      throw new SpiError('EINVAL', `the test refuses ${nameOf(QpState, state)}`);
    }
    if (state !== undefined) this.checkTransition(state);
    this.modified.push(attributes);
    if (state !== undefined) this.state = state;
    if (state === QpState.ERR) this.flushReceives();
    if (state === QpState.RESET) this.forget();
  }

  /** What is posted is forgotten, without a completion; indices go on (docs/spi.md). */
  protected forget(): void {
    this.sendRing.consumer = this.sendRing.producer;
    this.receiveRing.consumer = this.receiveRing.producer;
    this.held.length = 0;
  }

  query(): Readonly<QueuePairAttributes> {
    return Object.assign({}, ...this.modified) as QueuePairAttributes;
  }

  flightRecord(): readonly string[] {
    return [];
  }

  destroy(): void {
    this.destroyed = true;
    this.device.liveObjects--;
  }

  raise(event: AsyncEventType): void {
    this.device.network.world.defer(() => this.eventHandler(event));
  }

  releaseCompletions(): void {
    this.holdCompletions = false;
    for (const task of this.held.splice(0)) task();
  }

  receive(mad: Uint8Array, source: Gid, destination: Gid): void {
    const { receiveRing } = this;
    if (this.destroyed || receiveRing.length === 0 || this.state === QpState.ERR) return;
    const index = receiveRing.consumer;
    receiveRing.consumer += 1;
    const target = this.receiveBuffer(index);
    target.fill(0, 0, GRH_LENGTH);
    target.set(ipHeader(source, destination), isIpv4Gid(source) ? 20 : 0);
    target.set(mad, GRH_LENGTH);
    this.pushReceive(index, WcStatus.SUCCESS, GRH_LENGTH + mad.length);
  }

  private complete(task: () => void): void {
    if (this.holdCompletions) this.held.push(task);
    else task();
  }

  private statusOf(): WcStatus {
    if (this.state === QpState.SQE || this.state === QpState.ERR) return WcStatus.WR_FLUSH_ERR;
    const status = this.sendStatuses.shift() ?? WcStatus.SUCCESS;
    if (status !== WcStatus.SUCCESS) this.state = QpState.SQE;
    return status;
  }

  protected transmit(index: number): void {
    const { words } = this.sendRing;
    const at = this.sendRing.wordOf(index);
    const handle = this.device.addressHandles.get(words[at + SQE.ADDRESS_HANDLE] ?? 0);
    if (!handle) throw new Error('no such address handle');
    const data = this.bytesAt(words, at + SQE.SEGMENTS).slice();
    if (data.length !== MAD_BYTES) throw new Error(`MAD of ${data.length} bytes`);
    const qpn = words[at + SQE.REMOTE_QPN] ?? 0;
    const qkey = words[at + SQE.REMOTE_QKEY] ?? 0;
    this.device.network.carry({ from: this.device, destination: handle.gid, qpn, qkey, data });
  }

  protected completeSend(index: number, status: WcStatus): void {
    if (this.destroyed) return;
    const at = this.sendRing.wordOf(index);
    (this.init.sendCq as FakeCompletionQueue).push({
      CONTROL: status | (WcOpcode.SEND << 8),
      QPN: this.qpn,
      COOKIE_LO: this.sendRing.words[at + SQE.COOKIE_LO] ?? 0,
      COOKIE_HI: this.sendRing.words[at + SQE.COOKIE_HI] ?? 0,
      WQE_INDEX: index,
    });
  }

  private flushReceives(): void {
    const { receiveRing } = this;
    while (receiveRing.length > 0) {
      const index = receiveRing.consumer;
      receiveRing.consumer += 1;
      this.pushReceive(index, WcStatus.WR_FLUSH_ERR, 0);
    }
  }

  private pushReceive(index: number, status: WcStatus, byteLength: number): void {
    const at = this.receiveRing.wordOf(index);
    (this.init.receiveCq as FakeCompletionQueue).push({
      CONTROL: status | (WcOpcode.RECV << 8),
      QPN: this.qpn,
      COOKIE_LO: this.receiveRing.words[at + RQE.COOKIE_LO] ?? 0,
      COOKIE_HI: this.receiveRing.words[at + RQE.COOKIE_HI] ?? 0,
      BYTE_LENGTH: byteLength,
      SOURCE_QPN: GSI_QPN,
      SOURCE_PORT: this.sourcePort,
      WQE_INDEX: index,
    });
  }

  private receiveBuffer(index: number): Uint8Array {
    const { words } = this.receiveRing;
    return this.bytesAt(words, this.receiveRing.wordOf(index) + RQE.SEGMENTS);
  }

  private bytesAt(words: Uint32Array, segment: number): Uint8Array {
    const region = this.device.regions.get(words[segment + SGE.LKEY] ?? 0);
    if (!region) throw new Error('no such memory region');
    const offset = words[segment + SGE.ADDRESS_LO] ?? 0;
    const length = words[segment + SGE.LENGTH] ?? 0;
    if (offset + length > region.length) throw new Error('segment beyond its region');
    return region.subarray(offset, offset + length);
  }

  /** The order of states; attributes are the business of the software HCA's table. */
  private checkTransition(to: QpState): void {
    const { state } = this;
    const ok =
      to === QpState.ERR ||
      to === QpState.RESET ||
      to === state + 1 ||
      (state === QpState.SQE && to === QpState.RTS);
    if (ok) return;
    throw new SpiError('EINVAL', `${nameOf(QpState, state)} to ${nameOf(QpState, to)}`);
  }
}

function ipHeader(source: Gid, destination: Gid): Uint8Array {
  if (isIpv4Gid(source)) {
    const header = new Uint8Array(20);
    header[0] = 0x45;
    header.set(source.subarray(12), 12);
    header.set(destination.subarray(12), 16);
    return header;
  }
  const header = new Uint8Array(40);
  header[0] = 0x60;
  header.set(source, 8);
  header.set(destination, 24);
  return header;
}
