/** Two software HCAs, an initiator on one and a target with several receivers on the other. */
import assert from 'node:assert/strict';
import {
  Access,
  type AsyncEventType,
  type CompletionQueue,
  type MemoryRegion,
  type ProtectionDomain,
  QpState,
  QpType,
  type QueuePair,
  type QueuePairAttributes,
  type SharedReceiveQueue,
  WrOpcode,
  type XrcDomainHandle,
} from '../../core/spi/index.js';
import {
  type Completion,
  HcaPair,
  type SendRequest,
  type Side,
  type SideOptions,
  drain,
  postSend,
} from './hca-pair.js';

const ALL = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC;
export const XRC_MTU = 256;

/** A receiver as a process would be: zone, memory, queue and completions of its own. */
export class XrcReceiver {
  readonly pd: ProtectionDomain;
  readonly cq: CompletionQueue;
  readonly srq: SharedReceiveQueue;
  readonly region: MemoryRegion;
  readonly events: AsyncEventType[] = [];

  constructor(
    readonly side: Side,
    domain: XrcDomainHandle,
    cqEntries = 64,
  ) {
    const { device } = side.driver;
    this.pd = device.createProtectionDomain();
    this.cq = device.createCompletionQueue({
      minEntries: cqEntries,
      onNotify: () => undefined,
      onEvent: () => undefined,
    });
    this.region = this.pd.registerMemory(side.bytes, ALL, side.base);
    this.srq = device.createSharedReceiveQueue({
      pd: this.pd,
      maxWr: 64,
      maxSge: 2,
      onEvent: (event) => this.events.push(event),
      xrc: { domain, cq: this.cq },
    });
  }

  /** Submits a slot whose buffer is `length` bytes at `offset`. */
  post(slot: number, offset: number, length: number): void {
    const { slots, submissions } = this.srq.ring;
    const at = slots.wordOf(slot);
    const address = this.side.base + BigInt(offset);
    slots.words.set([1, 0, slot, 0], at);
    slots.words.set([Number(address & 0xffffffffn), Number(address >> 32n)], at + 4);
    slots.words.set([length, this.region.lkey], at + 6);
    submissions.words[submissions.wordOf(submissions.producer)] = slot;
    submissions.producer += 1;
    this.srq.ringDoorbell();
  }

  drain(): Completion[] {
    return drain(this.cq);
  }
}

export class XrcHcaPair extends HcaPair {
  readonly domain: XrcDomainHandle;
  readonly initiator: QueuePair;
  readonly target: QueuePair;
  readonly targetEvents: AsyncEventType[] = [];
  readonly receivers: XrcReceiver[] = [];

  constructor(
    receivers = 2,
    options: SideOptions = {},
    attributes: QueuePairAttributes = {},
    cqEntries?: number,
  ) {
    super(41, { memoryBytes: 0x60000, ...options });
    this.domain = this.b.driver.device.createXrcDomain();
    this.initiator = this.a.createQp({
      type: QpType.XRC_INI,
      maxReceiveWr: 0,
      maxReceiveSge: 0,
      xrcDomain: this.a.driver.device.createXrcDomain(),
    });
    this.target = this.b.createQp({
      type: QpType.XRC_TGT,
      maxSendWr: 1,
      maxReceiveWr: 0,
      xrcDomain: this.domain,
      onEvent: (event) => this.targetEvents.push(event),
    });
    for (let i = 0; i < receivers; i++) {
      this.receivers.push(new XrcReceiver(this.b, this.domain, cqEntries));
    }
    this.connect(attributes);
  }

  private connect(overrides: QueuePairAttributes): void {
    const values = { minRnrTimer: 1, maxDestRdAtomic: 4, accessFlags: ALL, ...overrides };
    const { accessFlags, minRnrTimer, maxDestRdAtomic } = values;
    for (const qp of [this.initiator, this.target]) {
      qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags });
    }
    const path = { pathMtuBytes: XRC_MTU, receivePsn: 0xfffffa };
    this.target.modify({
      ...path,
      state: QpState.RTR,
      addressVector: { gid: this.a.port.gids[0]!, localGidIndex: 0 },
      destinationQpn: this.initiator.qpn,
      minRnrTimer,
      maxDestRdAtomic,
    });
    this.initiator.modify({
      ...path,
      state: QpState.RTR,
      addressVector: { gid: this.b.port.gids[0]!, localGidIndex: 0 },
      destinationQpn: this.target.qpn,
    });
    this.initiator.modify({
      state: QpState.RTS,
      sendPsn: 0xfffffa,
      timeout: 8,
      retryCount: 5,
      rnrRetryCount: 7,
      maxRdAtomic: 4,
    });
  }
}

/** Where a test's messages are on the sending side, and where they go to on the other. */
export const FROM = 0x1000;
export const TO = 0x20000;

export function fill(bytes: Uint8Array): void {
  for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 31 + 7) & 0xff;
}

export function data(length: number): { offset: number; length: number }[] {
  return [{ offset: FROM, length }];
}

export function send(length: number): SendRequest {
  return { opcode: WrOpcode.SEND, segments: data(length) };
}

/** Posts a request for a receiver. */
export function post(pair: XrcHcaPair, request: SendRequest, receiver = 0): void {
  const xrcSrqn = pair.receivers[receiver]!.srq.srqn;
  postSend(pair.a, pair.initiator, { xrcSrqn, ...request });
}

/** How the initiator's requests ended, when they have had the time. */
export function statuses(pair: XrcHcaPair): number[] {
  pair.run(200_000);
  return drain(pair.a.sendCq).map(({ status }) => status);
}

/** The message is at the other side, and not a byte more. */
export function sameBytes(pair: XrcHcaPair, length: number): void {
  assert.deepEqual(
    pair.b.bytes.subarray(TO, TO + length),
    pair.a.bytes.subarray(FROM, FROM + length),
  );
  assert.equal(pair.b.bytes[TO + length], 0);
}
