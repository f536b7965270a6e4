/** A device of ours as an end: over the SPI, so with everything that DAT has no calls for. */
import {
  type AddressHandle,
  type CompletionQueue,
  CQE,
  type Device,
  gidFromIp,
  type MemoryRegion,
  type MemoryWindow,
  nameOf,
  nextRkey,
  type ProtectionDomain,
  QpState,
  QpType,
  type QueuePair,
  SpiError,
  WcFlags,
  WcOpcode,
  WcStatus,
  WrFlags,
  WrOpcode,
} from '../../../core/spi/index.js';
import {
  type Memory,
  postReceive,
  postSend,
  type Segment as PostedSegment,
} from '../../support/hca-pair.js';
import { patience, paused } from '../../support/patience.js';
import {
  type Bind,
  type Completion,
  type Completions,
  type Domain,
  type Handle,
  type ManualConnection,
  type ManualEnd,
  type Pair,
  POLL_TIMEOUT_MS,
  type QueuePairSizes,
  type Region,
  type Request,
  type Segment,
  type Window,
} from './end.js';
import { digestOf, fillPattern } from './pattern.js';

interface OwnRegion {
  readonly bytes: Uint8Array;
  readonly address: bigint;
  /** Stays when the region has been deregistered: a key that is no longer good. */
  readonly lkey: number;
  readonly region: MemoryRegion;
}

interface OwnWindow {
  readonly window: MemoryWindow;
  /** Of the last bind that was posted. */
  key: number;
}

interface OwnPair {
  readonly qp: QueuePair;
  readonly sendCq: CompletionQueue;
  readonly receiveCq: CompletionQueue;
  readonly sends: Completion[];
  readonly receives: Completion[];
}

/** Segments below name whole addresses. */
const NOWHERE: Pick<Memory, 'base'> = { base: 0n };
const nothing = (): void => undefined;
const POLL_PAUSE_MS = 1;

export class DeviceEnd implements ManualEnd {
  readonly dialect = 'verbs';
  private readonly domains: ProtectionDomain[] = [];
  private readonly regions: OwnRegion[] = [];
  private readonly windows: OwnWindow[] = [];
  private readonly handles: AddressHandle[] = [];
  private readonly pairs: OwnPair[] = [];

  constructor(
    readonly name: string,
    private readonly device: Device,
    readonly address: string,
  ) {}

  async domain(): Promise<Domain> {
    return { id: this.domains.push(this.device.createProtectionDomain()) - 1 };
  }

  async region(domain: Domain, lengthBytes: number, access: number): Promise<Region> {
    const bytes = new Uint8Array(this.device.allocate(lengthBytes));
    const region = at(this.domains, domain).registerMemory(bytes, access);
    const address = region.iova;
    const id = this.regions.push({ bytes, address, lkey: region.lkey, region }) - 1;
    return { id, address, rkey: region.rkey };
  }

  async deregister(region: Region): Promise<void> {
    at(this.regions, region).region.destroy();
  }

  async fill(segment: Segment, seed: number): Promise<void> {
    fillPattern(this.bytes(segment), seed);
  }

  async digest(segment: Segment): Promise<number> {
    return digestOf(this.bytes(segment));
  }

  async put(region: Region, offset: number, value: bigint): Promise<void> {
    viewOf(this.bytes({ region, offset, length: 8 })).setBigUint64(0, value, true);
  }

  async word(region: Region, offset: number): Promise<bigint> {
    return viewOf(this.bytes({ region, offset, length: 8 })).getBigUint64(0, true);
  }

  async window(domain: Domain): Promise<Window> {
    const window = this.device.createMemoryWindow?.(at(this.domains, domain), 2);
    if (window === undefined) throw new SpiError('EOPNOTSUPP', `${this.name}: no windows`);
    return { id: this.windows.push({ window, key: window.rkey }) - 1 };
  }

  async queuePair(domain: Domain, type: QpType, sizes: QueuePairSizes): Promise<Pair> {
    const { depth, segments, inlineBytes } = sizes;
    const cq = (): CompletionQueue =>
      this.device.createCompletionQueue({
        minEntries: 2 * depth,
        onNotify: nothing,
        onEvent: nothing,
      });
    const [sendCq, receiveCq] = [cq(), cq()];
    const qp = this.device.createQueuePair({
      type,
      pd: at(this.domains, domain),
      sendCq,
      receiveCq,
      maxSendWr: depth,
      maxReceiveWr: depth,
      maxSendSge: segments,
      maxReceiveSge: segments,
      maxInlineBytes: inlineBytes,
      context: 0,
      onEvent: nothing,
    });
    const id = this.pairs.push({ qp, sendCq, receiveCq, sends: [], receives: [] }) - 1;
    return { id, qpn: qp.qpn };
  }

  async connect(pair: Pair, to: ManualConnection): Promise<void> {
    const { qp } = at(this.pairs, pair);
    const isReliable = qp.type === QpType.RC;
    const { mtuBytes, minRnrTimer, reads, retryCount, rnrRetryCount } = to;
    const init = { pkeyIndex: 0, portNumber: 1, accessFlags: to.access };
    qp.modify({ state: QpState.INIT, ...init });
    qp.modify({
      state: QpState.RTR,
      addressVector: { gid: gidFromIp(to.address), localGidIndex: 0 },
      pathMtuBytes: mtuBytes,
      destinationQpn: to.qpn,
      receivePsn: to.receivePsn,
      ...(isReliable && { maxDestRdAtomic: reads, minRnrTimer }),
    });
    const timers = { timeout: to.ackTimeout, retryCount, rnrRetryCount, maxRdAtomic: reads };
    qp.modify({ state: QpState.RTS, sendPsn: to.sendPsn, ...(isReliable && timers) });
  }

  async datagrams(pair: Pair, qkey: number, sendPsn: number): Promise<void> {
    const { qp } = at(this.pairs, pair);
    qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, qkey });
    qp.modify({ state: QpState.RTR });
    qp.modify({ state: QpState.RTS, sendPsn });
  }

  async handle(domain: Domain, address: string): Promise<Handle> {
    const vector = { gid: gidFromIp(address), localGidIndex: 0 };
    const handle = this.device.createAddressHandle(at(this.domains, domain), vector);
    return { id: this.handles.push(handle) - 1 };
  }

  async state(pair: Pair): Promise<string> {
    return nameOf(QpState, at(this.pairs, pair).qp.state);
  }

  async toError(pair: Pair): Promise<void> {
    at(this.pairs, pair).qp.modify({ state: QpState.ERR });
  }

  listen(): Promise<never> {
    return this.byHand();
  }

  accept(): Promise<never> {
    return this.byHand();
  }

  dial(): Promise<never> {
    return this.byHand();
  }

  async receive(pair: Pair, wr: number, segments: readonly Segment[]): Promise<void> {
    const { qp } = at(this.pairs, pair);
    postReceive({ ...NOWHERE, region: this.anyRegion() }, qp, this.posted(segments), wr);
  }

  async send(pair: Pair, request: Request): Promise<void> {
    const { qp } = at(this.pairs, pair);
    const { wr, segments = [], datagram, flags = WrFlags.SIGNALED, ...rest } = request;
    const isInline = (flags & WrFlags.INLINE) !== 0;
    const payload = isInline
      ? { inline: Buffer.concat(segments.map((segment) => this.bytes(segment))) }
      : { segments: this.posted(segments) };
    const to = datagram && {
      addressHandle: at(this.handles, datagram.handle).handle,
      remoteQpn: datagram.qpn,
      remoteQkey: datagram.qkey,
    };
    const entry = { ...rest, ...payload, ...to, cookie: wr, flags };
    postSend({ ...NOWHERE, region: this.anyRegion() }, qp, entry, false);
  }

  async bind(pair: Pair, { wr, window, segment, access }: Bind): Promise<number> {
    const own = at(this.windows, window);
    const { region, address } = at(this.regions, segment.region);
    own.key = nextRkey(own.key);
    const where = { address: address + BigInt(segment.offset), length: segment.length };
    const bind = { window: own.window, rkey: own.key, region, access, ...where };
    const entry = { opcode: WrOpcode.BIND_MW, cookie: wr, bind };
    postSend({ ...NOWHERE, region }, at(this.pairs, pair).qp, entry, false);
    return own.key;
  }

  async post(pair: Pair): Promise<void> {
    at(this.pairs, pair).qp.ringSendDoorbell();
  }

  async poll(
    pair: Pair,
    sends: number,
    receives: number,
    timeoutMs = POLL_TIMEOUT_MS,
  ): Promise<Completions> {
    const own = at(this.pairs, pair);
    const deadlineMs = performance.now() + patience(timeoutMs);
    for (;;) {
      drain(own.sendCq, own.sends);
      drain(own.receiveCq, own.receives);
      const enough = own.sends.length >= sends && own.receives.length >= receives;
      if (enough || performance.now() >= deadlineMs) break;
      await paused(POLL_PAUSE_MS);
    }
    return { sends: own.sends.splice(0, sends), receives: own.receives.splice(0, receives) };
  }

  async close(): Promise<void> {
    await this.device.close();
  }

  private async byHand(): Promise<never> {
    throw new SpiError('EOPNOTSUPP', `${this.name}: queue pairs are connected by hand here`);
  }

  private bytes({ region, offset, length }: Segment): Uint8Array {
    return at(this.regions, region).bytes.subarray(offset, offset + length);
  }

  private posted(segments: readonly Segment[]): PostedSegment[] {
    return segments.map(({ region, offset, length }) => {
      const { address, lkey } = at(this.regions, region);
      return { offset: Number(address) + offset, length, lkey };
    });
  }

  /** Posting wants one; its key is not used, as every segment has its own. */
  private anyRegion(): MemoryRegion {
    return at(this.regions, { id: 0 }).region;
  }
}

/** What an object's number stands for. */
function at<T>(table: readonly T[], { id }: { readonly id: number }): T {
  const found = table[id];
  if (found === undefined) throw new SpiError('EINVAL', `no object ${id} of ${table.length}`);
  return found;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function drain(cq: CompletionQueue, into: Completion[]): void {
  for (let count = cq.poll(); count > 0; count = cq.poll()) {
    const { ring } = cq;
    for (let index = 0; index < count; index++) {
      into.push(completionAt(ring.words, ring.wordOf(ring.consumer)));
      ring.consumer += 1;
    }
  }
}

function completionAt(words: Uint32Array, start: number): Completion {
  const word = (offset: number): number => words[start + offset] ?? 0;
  const control = word(CQE.CONTROL);
  const opcode = (control >>> 8) & 0xff;
  const flags = (control >>> 16) & 0xff;
  const succeeded = (control & 0xff) === WcStatus.SUCCESS;
  const carries = opcode >= WcOpcode.RECV && (flags & (WcFlags.WITH_IMM | WcFlags.WITH_INV)) !== 0;
  return {
    wr: word(CQE.COOKIE_LO),
    status: nameOf(WcStatus, control & 0xff),
    opcode: succeeded ? nameOf(WcOpcode, opcode) : undefined,
    bytes: succeeded ? word(CQE.BYTE_LENGTH) : 0,
    immediate: succeeded && carries ? word(CQE.IMMEDIATE_OR_INVALIDATE) : undefined,
    sourceQpn: succeeded && (flags & WcFlags.GRH) !== 0 ? word(CQE.SOURCE_QPN) : undefined,
  };
}
