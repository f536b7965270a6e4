/** Two software HCAs on a virtual clock, and short ways to post and to read completions. */
import {
  CHANNEL_MTU_BYTES,
  Access,
  type AsyncEventType,
  type CompletionQueue,
  gidFromIp,
  type MemoryRegion,
  type MemoryWindow,
  type PacketPort,
  type PeerTerms,
  type ProtectionDomain,
  QpState,
  QpType,
  type QueuePair,
  type QueuePairAttributes,
  type QueuePairInit,
  RQE,
  SGE,
  type SharedReceiveQueue,
  type SharedReceiveQueueInit,
  silentLogger,
  SQE,
  WrFlags,
} from '../../core/spi/index.js';
import { HcaDriver, type HcaDriverOptions, type HcaParameters } from '../../providers/hca/index.js';
import { SeededRandom } from '../../providers/mock/index.js';
import { MemoryPort, joinPorts } from './memory-port.js';

export { drain } from './completions.js';
export type { Completion } from './completions.js';

const ALL = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC;

export class VirtualClock {
  timeUs = 1000;
  now(): number {
    return this.timeUs;
  }
}

/** One side: a device with a domain, a CQ each way, memory registered whole. */
export class Side {
  readonly port: MemoryPort;
  readonly driver: HcaDriver;
  readonly pd: ProtectionDomain;
  readonly sendCq: CompletionQueue;
  readonly receiveCq: CompletionQueue;
  readonly bytes: Uint8Array;
  readonly region: MemoryRegion;
  readonly base = 0x7f0000001000n;
  readonly events: AsyncEventType[] = [];
  readonly cqEvents: AsyncEventType[] = [];
  readonly srqEvents: AsyncEventType[] = [];
  notified = 0;
  /** What the consumer does when it is told of completions. */
  onNotified: () => void = () => undefined;
  pumpRequests = 0;

  constructor(ip: string, clock: VirtualClock, seed: number, options: SideOptions = {}) {
    const { mtuBytes, bufferBytes, localMtuBytes } = options;
    this.port = new MemoryPort(gidFromIp(ip), mtuBytes, bufferBytes, localMtuBytes);
    if (options.meet) {
      this.port.channelMtuBytes = CHANNEL_MTU_BYTES;
      this.port.listen = (): boolean => true;
      this.port.meet = options.meet;
    }
    this.driver = new HcaDriver({
      name: ip,
      port: this.port,
      clock,
      random: new SeededRandom(seed),
      logger: silentLogger,
      parameters: options.parameters ?? {},
      ...(options.sendFault && { sendFault: options.sendFault }),
      ...(options.receiveFault && { receiveFault: options.receiveFault }),
      requestPump: () => (this.pumpRequests += 1),
    });
    const { device } = this.driver;
    this.pd = device.createProtectionDomain();
    const cqInit = {
      minEntries: options.cqEntries ?? 1024,
      onNotify: () => {
        this.notified += 1;
        this.onNotified();
      },
      onEvent: (event: AsyncEventType) => this.cqEvents.push(event),
    };
    this.sendCq = device.createCompletionQueue(cqInit);
    this.receiveCq = device.createCompletionQueue(cqInit);
    this.bytes = new Uint8Array(options.memoryBytes ?? 1 << 20);
    this.region = this.pd.registerMemory(this.bytes, ALL, this.base);
  }

  createQp(init: Partial<QueuePairInit> = {}): QueuePair {
    return this.driver.device.createQueuePair({
      type: QpType.RC,
      pd: this.pd,
      sendCq: this.sendCq,
      receiveCq: this.receiveCq,
      maxSendWr: 128,
      maxReceiveWr: 128,
      maxSendSge: 16,
      maxReceiveSge: 16,
      maxInlineBytes: 256,
      context: 7,
      onEvent: (event) => this.events.push(event),
      ...init,
    });
  }

  createSrq(init: Partial<SharedReceiveQueueInit> = {}): SharedReceiveQueue {
    return this.driver.device.createSharedReceiveQueue({
      pd: this.pd,
      maxWr: 8,
      maxSge: 2,
      onEvent: (event) => this.srqEvents.push(event),
      ...init,
    });
  }
}

export interface SideOptions extends Pick<HcaDriverOptions, 'sendFault' | 'receiveFault'> {
  readonly address?: string;
  readonly mtuBytes?: number;
  /** Packets that may be so long as well, and whose payload is taken late. */
  readonly localMtuBytes?: number;
  /** How the port meets devices that offer a channel; absent: it has none. */
  readonly meet?: NonNullable<PacketPort['meet']>;
  readonly cqEntries?: number;
  readonly memoryBytes?: number;
  readonly bufferBytes?: number;
  readonly parameters?: Partial<HcaParameters>;
}

export class HcaPair {
  readonly clock = new VirtualClock();
  readonly a: Side;
  readonly b: Side;

  /** @param ofB where they differ from those of the other side */
  constructor(seed = 1, options: SideOptions = {}, ofB: SideOptions = {}) {
    const b = { ...options, ...ofB };
    this.a = new Side(options.address ?? '10.0.0.1', this.clock, seed, options);
    this.b = new Side(ofB.address ?? '10.0.0.2', this.clock, seed + 1, b);
    joinPorts(this.a.port, this.b.port);
  }

  /** Pumps both until nothing moves at this time. */
  settle(): void {
    for (let quiet = 0; quiet < 2;) {
      const requests = this.a.pumpRequests + this.b.pumpRequests;
      const busy = [this.a.driver.pump(), this.b.driver.pump()].includes(true);
      const more = this.a.port.pending + this.b.port.pending > 0;
      const asked = this.a.pumpRequests + this.b.pumpRequests > requests;
      quiet = busy || more || asked ? 0 : quiet + 1;
    }
  }

  /** Lets time pass, from timer to timer, until `forUs` have gone. */
  run(forUs: number): void {
    const end = this.clock.timeUs + forUs;
    this.settle();
    for (;;) {
      const next = Math.min(this.a.driver.nextDeadlineUs(), this.b.driver.nextDeadlineUs());
      if (next > end) break;
      this.clock.timeUs = Math.max(this.clock.timeUs, next);
      this.settle();
    }
    this.clock.timeUs = end;
  }
}

export const fastRetry = { timeout: 8, retryCount: 7, rnrRetryCount: 7, minRnrTimer: 1 };

/** @property peer what both have agreed to: by default nothing, as with one of another make */
export type ConnectOverrides = QueuePairAttributes & { readonly peer?: PeerTerms };

/** Takes two queue pairs to RTS, connected to each other. */
export function connect(
  pair: HcaPair,
  qpA: QueuePair,
  qpB: QueuePair,
  { peer, ...overrides }: ConnectOverrides = {},
  pathMtuBytes = 1024,
): void {
  const sides = [
    { qp: qpA, other: qpB, gid: pair.b.port.gids[0]!, sendPsn: 0xfffffa, receivePsn: 0x123 },
    { qp: qpB, other: qpA, gid: pair.a.port.gids[0]!, sendPsn: 0x123, receivePsn: 0xfffffa },
  ];
  const values = {
    ...fastRetry,
    maxRdAtomic: 4,
    maxDestRdAtomic: 4,
    accessFlags: ALL,
    ...overrides,
  };
  for (const { qp, other, gid, sendPsn, receivePsn } of sides) {
    qp.modify({
      state: QpState.INIT,
      pkeyIndex: 0,
      portNumber: 1,
      accessFlags: values.accessFlags,
    });
    qp.modify({
      state: QpState.RTR,
      addressVector: { gid, localGidIndex: 0, ...(peer && { peer }) },
      pathMtuBytes,
      destinationQpn: other.qpn,
      receivePsn,
      maxDestRdAtomic: values.maxDestRdAtomic,
      minRnrTimer: values.minRnrTimer,
    });
    qp.modify({
      state: QpState.RTS,
      sendPsn,
      timeout: values.timeout,
      retryCount: values.retryCount,
      rnrRetryCount: values.rnrRetryCount,
      maxRdAtomic: values.maxRdAtomic,
    });
  }
}

/** Takes two UC queue pairs to RTS, connected to each other. */
export function connectUc(
  pair: HcaPair,
  qpA: QueuePair,
  qpB: QueuePair,
  overrides: Pick<ConnectOverrides, 'accessFlags' | 'pathMtuBytes' | 'peer'> = {},
): void {
  const sides = [
    { qp: qpA, other: qpB, gid: pair.b.port.gids[0]! },
    { qp: qpB, other: qpA, gid: pair.a.port.gids[0]! },
  ];
  const { accessFlags = ALL, pathMtuBytes = 1024, peer } = overrides;
  for (const { qp, other, gid } of sides) {
    qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags });
    qp.modify({
      state: QpState.RTR,
      addressVector: { gid, localGidIndex: 0, ...(peer && { peer }) },
      pathMtuBytes,
      destinationQpn: other.qpn,
      receivePsn: 0xfffffe,
    });
  }
  for (const { qp } of sides) qp.modify({ state: QpState.RTS, sendPsn: 0xfffffe });
}

export interface Segment {
  /** Offset in the side's memory. */
  readonly offset: number;
  readonly length: number;
  readonly lkey?: number;
}

export interface SendRequest {
  readonly opcode: number;
  readonly cookie?: number;
  readonly flags?: number;
  readonly segments?: readonly Segment[];
  readonly inline?: Uint8Array;
  readonly remoteAddress?: bigint;
  readonly rkey?: number;
  readonly immediate?: number;
  readonly compareAdd?: bigint;
  readonly swap?: bigint;
  readonly addressHandle?: number;
  readonly remoteQpn?: number;
  readonly remoteQkey?: number;
  readonly xrcSrqn?: number;
  readonly bind?: Bind;
}

/** Operands of BIND_MW. */
export interface Bind {
  readonly window: MemoryWindow;
  readonly rkey: number;
  readonly region: MemoryRegion;
  readonly address: bigint;
  readonly length: number;
  readonly access: number;
}

/** What posting needs of a side. */
export interface Memory {
  readonly base: bigint;
  readonly region: MemoryRegion;
}

export function postSend(side: Memory, qp: QueuePair, request: SendRequest, doorbell = true): void {
  const ring = qp.sendRing;
  const at = ring.wordOf(ring.producer);
  const { words } = ring;
  const segments = request.segments ?? [];
  const flags = (request.flags ?? WrFlags.SIGNALED) | (request.inline ? WrFlags.INLINE : 0);
  words.fill(0, at, at + SQE.SEGMENTS);
  words[at + SQE.CONTROL] = request.opcode | (flags << 8) | (segments.length << 16);
  words[at + SQE.COOKIE_LO] = request.cookie ?? 0;
  putWide(words, at + SQE.REMOTE_ADDRESS_LO, request.remoteAddress ?? 0n);
  words[at + SQE.RKEY] = request.rkey ?? 0;
  words[at + SQE.IMMEDIATE_OR_INVALIDATE] = request.immediate ?? 0;
  putWide(words, at + SQE.COMPARE_ADD_LO, request.compareAdd ?? 0n);
  putWide(words, at + SQE.SWAP_LO, request.swap ?? 0n);
  words[at + SQE.ADDRESS_HANDLE] = request.addressHandle ?? 0;
  words[at + SQE.REMOTE_QPN] = request.remoteQpn ?? 0;
  words[at + SQE.REMOTE_QKEY] = request.remoteQkey ?? 0;
  words[at + SQE.XRC_SRQN] = request.xrcSrqn ?? 0;
  if (request.bind) putBind(words, at, request.bind);
  if (request.inline) {
    words[at + SQE.INLINE_LENGTH] = request.inline.length;
    const start = ring.byteOf(ring.producer) + SQE.SEGMENTS * 4;
    new Uint8Array(ring.buffer).set(request.inline, start);
  }
  putSegments(side, words, at + SQE.SEGMENTS, segments);
  ring.producer += 1;
  if (doorbell) qp.ringSendDoorbell();
}

function putBind(words: Uint32Array, at: number, bind: Bind): void {
  putWide(words, at + SQE.REMOTE_ADDRESS_LO, bind.address);
  putWide(words, at + SQE.BIND_LENGTH_LO, BigInt(bind.length));
  words[at + SQE.BIND_WINDOW] = bind.window.handle;
  words[at + SQE.BIND_REGION_LKEY] = bind.region.lkey;
  words[at + SQE.BIND_ACCESS] = bind.access;
  words[at + SQE.BIND_RKEY] = bind.rkey;
}

export function postReceive(
  side: Memory,
  qp: QueuePair,
  segments: readonly Segment[],
  cookie = 0,
): void {
  const ring = qp.receiveRing!;
  const at = ring.wordOf(ring.producer);
  ring.words[at + RQE.NUM_SGE] = segments.length;
  ring.words[at + RQE.COOKIE_LO] = cookie;
  ring.words[at + RQE.COOKIE_HI] = 0;
  putSegments(side, ring.words, at + RQE.SEGMENTS, segments);
  ring.producer += 1;
  qp.ringReceiveDoorbell();
}

/** Writes a slot of a shared receive queue and submits it. */
export function postShared(
  side: Memory,
  srq: SharedReceiveQueue,
  slot: number,
  segments: readonly Segment[],
  cookie = slot,
): void {
  submitSlot(side, srq, slot, segments, cookie);
  srq.ringDoorbell();
}

/** As `postShared`, without the doorbell. */
export function submitSlot(
  side: Memory,
  srq: SharedReceiveQueue,
  slot: number,
  segments: readonly Segment[],
  cookie = slot,
): void {
  const { slots, submissions } = srq.ring;
  const at = slots.wordOf(slot);
  slots.words[at + RQE.NUM_SGE] = segments.length;
  slots.words[at + RQE.COOKIE_LO] = cookie;
  slots.words[at + RQE.COOKIE_HI] = 0;
  putSegments(side, slots.words, at + RQE.SEGMENTS, segments);
  submissions.words[submissions.wordOf(submissions.producer)] = slot;
  submissions.producer += 1;
}

function putSegments(
  side: Memory,
  words: Uint32Array,
  at: number,
  segments: readonly Segment[],
): void {
  for (const [i, { offset, length, lkey }] of segments.entries()) {
    const word = at + i * SGE.WORDS;
    putWide(words, word + SGE.ADDRESS_LO, side.base + BigInt(offset));
    words[word + SGE.LENGTH] = length;
    words[word + SGE.LKEY] = lkey ?? side.region.lkey;
  }
}

function putWide(words: Uint32Array, at: number, value: bigint): void {
  words[at] = Number(value & 0xffffffffn);
  words[at + 1] = Number(value >> 32n);
}

/** Two sides with a queue pair each, connected. */
export function connectedPair(
  seed: number,
  options: SideOptions = {},
): { pair: HcaPair; qpA: QueuePair; qpB: QueuePair } {
  const pair = new HcaPair(seed, options);
  const qpA = pair.a.createQp();
  const qpB = pair.b.createQp();
  connect(pair, qpA, qpB);
  return { pair, qpA, qpB };
}
