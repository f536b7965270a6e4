/**
 * Requests of one XRC initiator for all the shared receive queues of another node's domain: they
 * end once and in order, their messages arrive in order at the queue that each of them names, and
 * they reach the memory of that queue's protection domain only.
 */
import {
  Access,
  AsyncEventType,
  type MemoryRegion,
  nameOf,
  QpState,
  QpType,
  type QueuePair,
  WcStatus,
  WrOpcode,
  type XrcDomainHandle,
} from '../../core/spi/index.js';
import { REMOTE } from './connecting.js';
import {
  effectOf,
  FLOW_BYTES,
  type FlowDraft,
  flowLength,
  FlowSender,
  randomBytes,
} from './flow-sender.js';
import type { Flow, FlowHost } from './flows.js';
import { MemoryModel } from './memory-model.js';
import { ReceiveChecker } from './receive-checker.js';
import { scatter, type SendRequest } from './requests.js';
import { type Completion, consumesReceive, type SendWorld } from './send-checker.js';
import type { SimNode } from './sim-node.js';
import { Violation } from './trace.js';
import type { XrcReceiver, XrcReceivers } from './xrc-receivers.js';

const GUARD_BYTES = 512;
/** READs are of memory that nobody writes. */
const CONSTANT = GUARD_BYTES;
const WRITABLE = CONSTANT + FLOW_BYTES;
const WORDS = WRITABLE + 2 * FLOW_BYTES;
const WORD_COUNT = 8;
const REGION_BYTES = WORDS + 8 * WORD_COUNT - CONSTANT;
const TOTAL_BYTES = GUARD_BYTES + REGION_BYTES + GUARD_BYTES;
const MISTAKE_PERCENT = 1.5;

/** Memory of the flow with one receiver. */
interface Target {
  readonly receiver: XrcReceiver;
  readonly model: MemoryModel;
  readonly base: bigint;
  readonly region: MemoryRegion;
  /** What the words for atomics hold when all that has been posted is done. */
  readonly words: bigint[];
}

export class XrcFlow implements Flow {
  readonly node: SimNode;
  readonly sender: FlowSender;
  private readonly domain: XrcDomainHandle;
  private readonly qp: QueuePair;
  private readonly targets: readonly Target[];
  private readonly receives: ReceiveChecker;
  private readonly service: XrcReceivers;
  private readonly mtuBytes: number;
  private readonly patient: boolean;
  /** Receivers by their request. */
  private readonly owner = new Map<SendRequest, Target>();

  constructor(
    readonly name: string,
    readonly from: SimNode,
    readonly to: SimNode,
    private readonly host: FlowHost,
  ) {
    const { random } = host;
    const { xrc } = to;
    if (!xrc) throw new Error('a node without XRC receivers');
    this.node = from;
    this.service = xrc;
    this.mtuBytes = random.pick([256, 512, 1024]);
    this.patient = host.quiet || random.percent(80);
    this.domain = from.node.device.createXrcDomain();
    const onEvent = (event: AsyncEventType): void => host.guard(() => this.onEvent(event));
    this.sender = new FlowSender(`${name} sender`, host.nextContext(), from, random, this, (init) =>
      from.node.device.createQueuePair({
        ...init,
        type: QpType.XRC_INI,
        receiveCq: from.cq,
        xrcDomain: this.domain,
        onEvent,
      }),
    );
    this.qp = to.node.device.createQueuePair({
      type: QpType.XRC_TGT,
      pd: to.pd,
      sendCq: to.cq,
      receiveCq: to.cq,
      xrcDomain: xrc.domain,
      maxSendWr: 1,
      maxReceiveWr: 0,
      maxSendSge: 1,
      maxReceiveSge: 0,
      maxInlineBytes: 0,
      context: 0,
      onEvent,
    });
    this.receives = new ReceiveChecker(name);
    this.targets = xrc.receivers.map((receiver, i) => this.makeTarget(receiver, i));
    xrc.flows.set(this.qp.qpn, { name, take: (completion) => this.take(completion) });
    for (const { shared } of xrc.receivers) shared.users += 1;
    this.connect();
  }

  get models(): readonly MemoryModel[] {
    return [this.sender.model, ...this.targets.map(({ model }) => model)];
  }

  post(most: number): number {
    const count = Math.min(most, this.sender.room);
    let posted = 0;
    while (posted < count) {
      const target = this.host.random.pick(this.targets);
      const draft = this.draft(target);
      if (!draft) break;
      this.postTo(target, this.spoil(target, draft));
      posted++;
    }
    if (posted > 0) this.sender.qp.ringSendDoorbell();
    return posted;
  }

  feed(most: number): void {
    for (const { shared } of this.service.receivers) shared.post(most);
  }

  marker(): void {
    const xrcSrqn = this.targets[0]?.receiver.shared.srq.srqn ?? 0;
    this.sender.postMarker({ xrcSrqn });
  }

  verify(what: string): void {
    for (const model of this.models) model.verify(`${what}, ${this.name}`);
  }

  end(): void {
    for (const qp of [this.sender.qp, this.qp]) {
      if (qp.state !== QpState.ERR) qp.modify({ state: QpState.ERR });
    }
    this.from.drainEarly();
    this.to.drainEarly();
    this.sender.checkEnd();
    const { received } = this.receives;
    const { delivered } = this.sender.checker;
    if (received < delivered) {
      throw new Violation(`${this.name}: ${delivered} are acknowledged, ${received} received`);
    }
    this.verify('the end');
    for (const { model } of this.targets) model.settle();
    this.service.flows.delete(this.qp.qpn);
    this.sender.destroy();
    this.qp.destroy();
    this.domain.destroy();
    for (const { region, receiver } of this.targets) {
      region.destroy();
      receiver.shared.users -= 1;
    }
  }

  // --- FlowSenderWorld --------------------------------------------------------------------------

  sendWorld(): SendWorld {
    return {
      unreachable: this.host.isLossy(this) || this.qp.state === QpState.ERR,
      rnrLimited: !this.patient,
      revoked: false,
      revokedHere: false,
      broken: this.sender.broken,
      tooLong: ({ plan }) => plan === 'bad-srq',
    };
  }

  onSucceeded(request: SendRequest, what: string): void {
    this.confirm(request, what);
    this.host.mark('XRC requests');
  }

  onFailed(reason: string): void {
    this.host.trace.note(`${this.name} broken: ${reason}`);
    this.host.onFlowBroken(this);
  }

  // --- making it --------------------------------------------------------------------------------

  private makeTarget(receiver: XrcReceiver, i: number): Target {
    const { random } = this.host;
    const bytes = randomBytes(random, TOTAL_BYTES);
    const base = BigInt(random.u32()) * 4096n;
    const memory = bytes.subarray(CONSTANT, CONSTANT + REGION_BYTES);
    const access = Access.LOCAL_WRITE | REMOTE;
    const region = receiver.pd.registerMemory(memory, access, base + BigInt(CONSTANT));
    const view = new DataView(bytes.buffer);
    const words = Array.from({ length: WORD_COUNT }, (_, n) =>
      view.getBigUint64(WORDS + 8 * n, true),
    );
    return { receiver, model: new MemoryModel(`${this.name}.${i}`, bytes), base, region, words };
  }

  private connect(): void {
    const { random, quiet } = this.host;
    const psn = random.percent(50) ? 0xffffff - random.below(200) : random.below(1 << 24);
    const qp = this.sender.qp;
    const path = { pathMtuBytes: this.mtuBytes, receivePsn: psn };
    const init = { state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: REMOTE };
    const readDepth = random.pick([1, 4]);
    this.qp.modify(init);
    this.qp.modify({
      ...path,
      state: QpState.RTR,
      addressVector: { gid: this.from.node.port.gids[0]!, localGidIndex: 0 },
      destinationQpn: qp.qpn,
      minRnrTimer: random.between(1, 12),
      maxDestRdAtomic: readDepth,
    });
    qp.modify(init);
    qp.modify({
      ...path,
      state: QpState.RTR,
      addressVector: { gid: this.to.node.port.gids[0]!, localGidIndex: 0 },
      destinationQpn: this.qp.qpn,
    });
    qp.modify({
      state: QpState.RTS,
      sendPsn: psn,
      timeout: random.between(quiet ? 10 : 8, 11),
      retryCount: this.patient ? 7 : random.between(1, 6),
      rnrRetryCount: this.patient ? 7 : random.between(3, 7),
      maxRdAtomic: readDepth,
    });
  }

  // --- posting ----------------------------------------------------------------------------------

  private draft(target: Target): FlowDraft | undefined {
    const { random } = this.host;
    const kind = random.below(10);
    if (kind < 4) {
      const opcode = random.percent(40) ? WrOpcode.SEND_WITH_IMM : WrOpcode.SEND;
      return { ...this.outgoing(), opcode, immediate: random.u32() };
    }
    if (kind < 7) return this.write(target);
    return kind < 9 ? this.read(target) : this.atomic(target);
  }

  private outgoing(): Pick<SendRequest, 'length' | 'segments' | 'payload'> {
    return this.sender.outgoing(flowLength(this.host.random, this.mtuBytes, FLOW_BYTES));
  }

  private write(target: Target): FlowDraft {
    const { random } = this.host;
    const draft = this.outgoing();
    const offset = WRITABLE + random.below(2 * FLOW_BYTES - draft.length + 1);
    return {
      ...draft,
      opcode: random.percent(25) ? WrOpcode.RDMA_WRITE_WITH_IMM : WrOpcode.RDMA_WRITE,
      immediate: random.u32(),
      remoteAddress: target.base + BigInt(offset),
      rkey: target.region.rkey,
      remote: effectOf(offset, draft.payload),
    };
  }

  private read(target: Target): FlowDraft | undefined {
    const { random } = this.host;
    const length = flowLength(random, this.mtuBytes, FLOW_BYTES);
    const offset = CONSTANT + random.below(FLOW_BYTES - length + 1);
    const landing = this.sender.landing(target.model.bytes.slice(offset, offset + length));
    if (!landing) return undefined;
    const remoteAddress = target.base + BigInt(offset);
    const { rkey } = target.region;
    return { ...landing, opcode: WrOpcode.RDMA_READ, length, remoteAddress, rkey };
  }

  private atomic(target: Target): FlowDraft | undefined {
    const { random } = this.host;
    const n = random.below(WORD_COUNT);
    const value = target.words[n] ?? 0n;
    const landing = this.sender.landing(littleEndian(value));
    if (!landing) return undefined;
    const add = random.percent(50);
    const compareAdd = add || random.percent(30) ? BigInt(random.u32()) : value;
    const swap = add ? 0n : BigInt(random.u32());
    const after = add ? value + compareAdd : compareAdd === value ? swap : value;
    const offset = WORDS + 8 * n;
    return {
      ...landing,
      opcode: add ? WrOpcode.ATOMIC_FETCH_AND_ADD : WrOpcode.ATOMIC_CMP_AND_SWP,
      length: 8,
      remoteAddress: target.base + BigInt(offset),
      rkey: target.region.rkey,
      compareAdd,
      swap,
      remote: [{ offset, data: littleEndian(after) }],
    };
  }

  /** Now and then the key of another receiver's memory, or a queue that is none of the domain. */
  private spoil(target: Target, draft: FlowDraft): FlowDraft {
    const { random } = this.host;
    const { srqn } = target.receiver.shared.srq;
    const good = { ...draft, xrcSrqn: srqn };
    if (!random.percent(MISTAKE_PERCENT)) return good;
    const clean = { remote: [], local: [] };
    const [other] = this.targets.filter((each) => each !== target);
    if (random.percent(60) && other && draft.rkey && draft.length > 0) {
      // Its address is right, but the queue that is named is of another protection domain.
      const remoteAddress = other.base + BigInt(WRITABLE);
      const there = { ...good, ...clean, remoteAddress };
      return { ...there, plan: 'bad-rkey', rkey: other.region.rkey };
    }
    const xrcSrqn = random.pick([this.to.shared.srq.srqn, 0xffffff]);
    return { ...good, ...clean, plan: 'bad-srq', xrcSrqn };
  }

  private postTo(target: Target, draft: FlowDraft): void {
    const request = this.sender.post(draft);
    this.owner.set(request, target);
    if (request.plan === 'ok' && request.opcode >= WrOpcode.ATOMIC_CMP_AND_SWP) {
      const [effect] = request.remote;
      if (effect) target.words[(effect.offset - WORDS) / 8] = wordOf(effect.data);
    }
    if (consumesReceive(request.opcode)) this.receives.messages.push(request);
    for (const effect of request.remote) target.model.begin(effect);
  }

  // --- what arrives -----------------------------------------------------------------------------

  private take(c: Completion): void {
    const shared = this.service.named(c.srqn);
    const receive = shared.take(c, this.name);
    const message = this.receives.complete(receive, c, this.qp.state === QpState.ERR);
    const what = `${this.name}: receive ${c.wqeIndex} of SRQ ${c.srqn}`;
    if (message) {
      if (message.plan !== 'ok') throw new Violation(`${what}: message ${message.plan} arrives`);
      if (message.xrcSrqn !== c.srqn) throw new Violation(`${what}: sent to ${message.xrcSrqn}`);
      for (const earlier of this.sender.checker.outstanding) {
        if (earlier.index <= message.index) this.confirm(earlier, what);
      }
      if (message.opcode !== WrOpcode.RDMA_WRITE_WITH_IMM) {
        for (const effect of scatter(message.payload, receive.segments)) {
          shared.model.commit(effect, what);
        }
      }
      this.host.mark('XRC messages');
    }
    shared.adopt(receive);
  }

  /** It has been executed at the other side. */
  private confirm(request: SendRequest, what: string): void {
    const model = this.owner.get(request)?.model;
    for (const effect of request.remote) {
      if (model?.pending.has(effect)) model.commit(effect, what);
    }
  }

  private onEvent(event: AsyncEventType): void {
    const name = nameOf(AsyncEventType, event);
    this.host.trace.note(`${this.name} event ${name}`);
    if (event === AsyncEventType.COMM_EST) return;
    if (event === AsyncEventType.QP_LAST_WQE_REACHED && this.qp.state === QpState.ERR) return;
    const { outstanding, failure } = this.sender.checker;
    const refused = failure !== WcStatus.SUCCESS || outstanding.some(({ plan }) => plan !== 'ok');
    const fatal = event === AsyncEventType.QP_ACCESS_ERR || event === AsyncEventType.QP_REQ_ERR;
    if (!fatal || !refused) throw new Violation(`${this.name}: event ${name} without a reason`);
    this.host.mark(`XRC ${name}`);
    this.host.onFlowBroken(this);
  }
}

function littleEndian(value: bigint): Uint8Array {
  const data = new Uint8Array(8);
  new DataView(data.buffer).setBigUint64(0, BigInt.asUintN(64, value), true);
  return data;
}

function wordOf(data: Uint8Array): bigint {
  return new DataView(data.buffer, data.byteOffset).getBigUint64(0, true);
}
