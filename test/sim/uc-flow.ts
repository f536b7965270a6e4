/**
 * Messages one way over a pair of UC queue pairs. What arrives is whole, comes once and in the
 * order of posting; whole messages may be missing. A WRITE that is lost may leave some of its
 * packets, until a later message has come: after that, nothing of it may change memory any more.
 */
import {
  Access,
  AsyncEventType,
  type MemoryRegion,
  nameOf,
  QpState,
  QpType,
  type QueuePair,
  WcFlags,
  WcOpcode,
  WcStatus,
  WrFlags,
  WrOpcode,
} from '../../core/spi/index.js';
import { FLOW_BYTES, FlowSender, effectOf, flowLength, randomBytes } from './flow-sender.js';
import type { Flow, FlowHost } from './flows.js';
import { MemoryModel } from './memory-model.js';
import { ReceiveChecker } from './receive-checker.js';
import {
  gather,
  type ReceiveRequest,
  scatter,
  type SendRequest,
  writeReceive,
} from './requests.js';
import type { Completion, SendWorld } from './send-checker.js';
import type { SharedReceives } from './shared-receives.js';
import type { SimNode } from './sim-node.js';
import { Violation } from './trace.js';

const GUARD_BYTES = 512;
const RECEIVES = 8;
const RECEIVE = GUARD_BYTES;
const TARGET = RECEIVE + RECEIVES * FLOW_BYTES + GUARD_BYTES;
const TARGET_BYTES = 2 * FLOW_BYTES;
const TOTAL_BYTES = TARGET + TARGET_BYTES + GUARD_BYTES;
const ABUSE_PERCENT = 2;

interface Message {
  readonly request: SendRequest;
  /** It reaches for memory that is not its own: nothing of it may arrive. */
  readonly refused: boolean;
}

export class UcFlow implements Flow {
  readonly node: SimNode;
  readonly sender: FlowSender;
  readonly model: MemoryModel;
  private readonly qp: QueuePair;
  private readonly base: bigint;
  private readonly receive: MemoryRegion;
  private readonly target: MemoryRegion;
  private readonly receives: ReceiveChecker;
  private readonly context: number;
  private readonly mtuBytes: number;
  /** Where its receives come from, if it has none of its own. */
  private readonly shared: SharedReceives | undefined;
  /** Those after the last one that has come. */
  private messages: Message[] = [];
  private nextReceive = 0;
  private immediate = 0;

  constructor(
    readonly name: string,
    readonly from: SimNode,
    readonly to: SimNode,
    private readonly host: FlowHost,
  ) {
    const { random } = host;
    this.node = from;
    this.mtuBytes = random.pick([256, 512, 1024]);
    this.shared = random.percent(50) ? to.shared : undefined;
    if (this.shared) this.shared.users += 1;
    const onEvent = (event: AsyncEventType): void => host.guard(() => this.onEvent(event));
    this.sender = new FlowSender(`${name} sender`, host.nextContext(), from, random, this, (init) =>
      from.node.device.createQueuePair({
        ...init,
        type: QpType.UC,
        receiveCq: from.cq,
        onEvent,
      }),
    );
    const bytes = randomBytes(random, TOTAL_BYTES);
    this.model = new MemoryModel(name, bytes);
    this.base = BigInt(random.u32()) * 4096n;
    const register = (at: number, length: number, access: number): MemoryRegion =>
      to.pd.registerMemory(bytes.subarray(at, at + length), access, this.base + BigInt(at));
    this.receive = register(RECEIVE, RECEIVES * FLOW_BYTES, Access.LOCAL_WRITE);
    this.target = register(TARGET, TARGET_BYTES, Access.LOCAL_WRITE | Access.REMOTE_WRITE);
    this.receives = new ReceiveChecker(name);
    this.context = host.nextContext();
    this.qp = to.node.device.createQueuePair({
      type: QpType.UC,
      pd: to.pd,
      sendCq: to.cq,
      receiveCq: to.cq,
      maxSendWr: 1,
      maxReceiveWr: RECEIVES,
      maxSendSge: 1,
      maxReceiveSge: 2,
      maxInlineBytes: 0,
      ...(this.shared && { srq: this.shared.srq }),
      context: this.context,
      onEvent,
    });
    to.takers.set(this.context, { name, take: (completion) => this.take(completion) });
    this.connect();
  }

  get models(): readonly MemoryModel[] {
    return [this.model, this.sender.model];
  }

  post(most: number): number {
    const { random } = this.host;
    const count = Math.min(most, this.sender.room);
    for (let i = 0; i < count; i++) this.send(random.below(4));
    if (count > 0) this.sender.qp.ringSendDoorbell();
    return count;
  }

  feed(most: number): void {
    if (this.shared) {
      this.shared.post(most);
      return;
    }
    const count = Math.min(most, RECEIVES - this.receives.outstanding.length);
    const { outstanding } = this.receives;
    for (let i = 0; i < count; i++) {
      let slot = this.host.random.below(RECEIVES);
      while (outstanding.some((each) => each.slot === slot)) slot = (slot + 1) % RECEIVES;
      this.postReceive(slot);
    }
    if (count > 0) this.qp.ringReceiveDoorbell();
  }

  marker(): void {
    this.sender.postMarker({});
  }

  verify(what: string): void {
    this.sender.model.verify(what);
    for (const { slot } of this.receives.outstanding) this.adopt(slot);
    this.model.verify(`${what}, ${this.name}`);
  }

  end(): void {
    for (const qp of [this.sender.qp, this.qp]) {
      if (qp.state !== QpState.ERR) qp.modify({ state: QpState.ERR });
    }
    this.from.drainEarly();
    this.to.drainEarly();
    this.sender.checkEnd();
    this.receives.checkFlushed();
    this.verify('the end');
    this.model.settle();
    this.sender.destroy();
    if (this.shared) this.shared.users -= 1;
    this.to.takers.delete(this.context);
    this.qp.destroy();
    this.receive.destroy();
    this.target.destroy();
  }

  // --- FlowSenderWorld --------------------------------------------------------------------------

  sendWorld(): SendWorld {
    return {
      unreachable: false,
      rnrLimited: false,
      revoked: false,
      revokedHere: false,
      broken: this.sender.broken,
      tooLong: () => false,
    };
  }

  /** That its packets have left tells nothing about the other side. */
  onSucceeded(): void {
    this.host.mark('UC messages sent');
  }

  onFailed(reason: string): void {
    throw new Violation(`${this.name}: ${reason}, but UC waits for nobody`);
  }

  // --- posting ----------------------------------------------------------------------------------

  private connect(): void {
    const { random } = this.host;
    const psn = random.percent(50) ? 0xffffff - random.below(200) : random.below(1 << 24);
    const sides = [
      { qp: this.sender.qp, node: this.to, peer: this.qp },
      { qp: this.qp, node: this.from, peer: this.sender.qp },
    ];
    for (const { qp, node, peer } of sides) {
      const accessFlags = Access.REMOTE_WRITE;
      qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags });
      qp.modify({
        state: QpState.RTR,
        addressVector: { gid: node.node.port.gids[0]!, localGidIndex: 0 },
        pathMtuBytes: this.mtuBytes,
        destinationQpn: peer.qpn,
        receivePsn: psn,
      });
    }
    for (const { qp } of sides) qp.modify({ state: QpState.RTS, sendPsn: psn });
  }

  private send(kind: number): void {
    const { random } = this.host;
    const draft = this.sender.outgoing(flowLength(random, this.mtuBytes, FLOW_BYTES));
    const immediate = ++this.immediate;
    if (kind < 2) {
      const opcode = kind === 0 ? WrOpcode.SEND : WrOpcode.SEND_WITH_IMM;
      const request = this.sender.post({ ...draft, opcode, immediate });
      this.messages.push({ request, refused: false });
      return;
    }
    const opcode = kind === 2 ? WrOpcode.RDMA_WRITE : WrOpcode.RDMA_WRITE_WITH_IMM;
    const refused = draft.length > 0 && random.percent(ABUSE_PERCENT);
    const room = TARGET_BYTES - draft.length;
    const offset = TARGET + (refused ? room + random.between(1, 64) : random.below(room + 1));
    const remote = refused ? [] : effectOf(offset, draft.payload);
    const { rkey } = this.target;
    const remoteAddress = this.base + BigInt(offset);
    const all = { ...draft, opcode, immediate, remoteAddress, rkey, remote };
    this.messages.push({ request: this.sender.post(all), refused });
    for (const effect of remote) this.model.begin(effect);
  }

  private postReceive(slot: number): void {
    const { lkey } = this.receive;
    const cut = this.host.random.below(FLOW_BYTES + 1);
    const offset = RECEIVE + slot * FLOW_BYTES;
    const request: ReceiveRequest = {
      index: this.nextReceive,
      cookie: this.nextReceive * 2 + 1,
      slot,
      segments: [
        { offset, length: cut, lkey },
        { offset: offset + cut, length: FLOW_BYTES - cut, lkey },
      ],
      capacity: FLOW_BYTES,
    };
    const ring = this.qp.receiveRing;
    if (!ring) throw new Error('a queue pair without a receive ring');
    writeReceive(ring, this.base, request);
    this.nextReceive += 1;
    this.receives.post(request);
  }

  // --- what arrives -----------------------------------------------------------------------------

  private take(c: Completion): void {
    const shared = this.shared;
    const receive = shared?.take(c, this.name) ?? this.receives.take(c);
    const what = `${this.name}: receive ${c.wqeIndex}`;
    if (c.status !== WcStatus.SUCCESS) {
      if (c.status !== WcStatus.WR_FLUSH_ERR || this.qp.state !== QpState.ERR) {
        throw new Violation(`${what} ends with ${nameOf(WcStatus, c.status)}`);
      }
      if (shared) shared.adopt(receive);
      else this.adopt(receive.slot);
      return;
    }
    const at = this.messages.findIndex((message) => this.isOf(message, c, receive));
    const message = this.messages[at];
    if (!message) throw new Violation(`${what}: no message to come is like it`);
    if (message.refused) throw new Violation(`${what}: a message that must be refused`);
    const lost = this.messages.splice(0, at + 1).slice(0, -1);
    for (const { request } of lost) this.forget(request);
    const { request } = message;
    if (isWrite(request)) for (const each of request.remote) this.model.commit(each, what);
    else {
      const { model } = shared ?? this;
      for (const each of scatter(request.payload, receive.segments)) model.commit(each, what);
    }
    // A message that was lost on the way may have left something in it before this one took it.
    if (shared) shared.adopt(receive);
    else this.adopt(receive.slot);
    this.host.mark('UC messages received');
  }

  /** Nothing of it comes any more; whether it has left something cannot be told. */
  private forget(request: SendRequest): void {
    for (const effect of request.remote) {
      this.model.verify(`${this.name}: message ${request.index} is over`, this.underWay());
      this.model.adopt(effect.offset, effect.data.length);
      this.model.drop(effect);
    }
    if (request.opcode !== WrOpcode.RDMA_WRITE) this.host.mark('UC messages lost');
  }

  /** What is in receives is compared when they complete. */
  private underWay(): { offset: number; data: Uint8Array }[] {
    const length = RECEIVES * FLOW_BYTES;
    return [{ offset: RECEIVE, data: this.model.bytes.subarray(RECEIVE, RECEIVE + length) }];
  }

  private isOf({ request }: Message, c: Completion, receive: ReceiveRequest): boolean {
    const { opcode, payload, length, immediate, flags } = request;
    if (opcode === WrOpcode.RDMA_WRITE) return false;
    const write = opcode === WrOpcode.RDMA_WRITE_WITH_IMM;
    const wanted = write ? WcOpcode.RECV_RDMA_WITH_IMM : WcOpcode.RECV;
    const solicited = (flags & WrFlags.SOLICITED) !== 0;
    if (c.opcode !== wanted || c.byteLength !== length) return false;
    if (((c.flags & WcFlags.SOLICITED) !== 0) !== solicited) return false;
    const numbered = (c.flags & WcFlags.WITH_IMM) !== 0;
    if (numbered !== (opcode !== WrOpcode.SEND)) return false;
    if (numbered) return c.immediate === immediate;
    const bytes = gather((this.shared ?? this).model.bytes, receive.segments).subarray(0, length);
    return Buffer.compare(bytes, payload) === 0;
  }

  private adopt(slot: number): void {
    this.model.adopt(RECEIVE + slot * FLOW_BYTES, FLOW_BYTES);
  }

  private onEvent(event: AsyncEventType): void {
    if (event === AsyncEventType.COMM_EST) return;
    const last = event === AsyncEventType.QP_LAST_WQE_REACHED;
    if (last && this.shared && this.qp.state === QpState.ERR) return;
    throw new Violation(`${this.name}: event ${nameOf(AsyncEventType, event)}`);
  }
}

function isWrite({ opcode }: SendRequest): boolean {
  return opcode === WrOpcode.RDMA_WRITE || opcode === WrOpcode.RDMA_WRITE_WITH_IMM;
}
