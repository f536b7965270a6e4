/** What one side of a lane posts: all operations that its type has, in messages of all lengths. */
import { QpState, WcFlags, WcOpcode, WrFlags, WrOpcode } from '../../core/spi/index.js';
import type { SeededRandom } from '../../providers/mock/index.js';
import { Violation } from '../sim/trace.js';
import type { Completion } from '../support/completions.js';
import type { SendRequest } from '../support/hca-pair.js';
import { SLOTS, SLOT_BYTES, WINDOW_SLOTS, WORD_COUNT } from './verbs-memory.js';
import type { Outstanding, VerbsSide } from './verbs-side.js';

/** Not privileged; the lower bits are a lane's own. */
export const UD_QKEY_BASE = 0x1000_0000;
const GRH_BYTES = 40;
const UNSIGNALLED_PERCENT = 25;
/** After so many without, one is signalled. */
const MAX_UNSIGNALLED = 4;

/** What the work is about. */
export interface Lane {
  readonly type: 'RC' | 'UC' | 'UD' | 'XRC';
  readonly spared: boolean;
  readonly random: SeededRandom;
  readonly mtuBytes: number;
  readonly qkey: number;
}

/** A message that the peer is to receive. */
interface Message {
  readonly data: Uint8Array;
  /** Where a WRITE with immediate puts its bytes. */
  readonly written: number | undefined;
  readonly immediate: number | undefined;
  readonly invalidates: number | undefined;
}

export class LaneWork {
  private readonly messages: Message[] = [];
  /** Number of the last WRITE into each slot of the target and of the window. */
  private readonly turns = new Map<number, number>();
  private readonly words: bigint[];
  private turn = 0;
  private silent = 0;

  constructor(
    private readonly lane: Lane,
    private readonly own: VerbsSide,
    private readonly peer: VerbsSide,
    private readonly addressHandle: number | undefined,
  ) {
    const view = new DataView(peer.memory.bytes.buffer, peer.areas.words.start);
    this.words = Array.from({ length: WORD_COUNT }, (_, i) => view.getBigUint64(8 * i, true));
  }

  get broken(): boolean {
    return this.own.qp.state === QpState.ERR || this.own.qp.state === QpState.SQE;
  }

  /** @param ending posts receives only, and what makes the end of other requests known */
  act(ending: boolean): void {
    const { own, lane } = this;
    const { random } = lane;
    const isTarget = own.srq !== undefined;
    const isInitiator = own.domain !== undefined && !isTarget;
    if (!isInitiator) own.postReceives(random.between(ending ? 8 : 1, 8));
    if (isTarget) return;
    if (ending) {
      if (own.sends.length > 0 && this.silent > 0) this.marker();
      return;
    }
    for (let i = random.between(0, 3); i > 0 && own.sendRoom > 1; i--) this.post();
  }

  /** A request that ends signalled those before it. */
  private marker(): void {
    if (this.own.sendRoom === 0) return;
    this.silent = MAX_UNSIGNALLED;
    if (this.lane.type === 'UD') this.send(0);
    else this.request({ opcode: WrOpcode.RDMA_WRITE }, { what: 'marker', message: false });
  }

  private post(): void {
    const { random, type } = this.lane;
    const kind = random.below(100);
    if (type === 'UD') this.send(random.below(this.lane.mtuBytes + 1));
    else if (kind < 35) this.send(this.length());
    else if (kind < 55 || type === 'UC') this.write();
    else if (kind < 67) this.read();
    else if (kind < 80) this.atomic();
    else if (this.own.window && this.own.windowState === 'free') this.own.bind();
    else this.write();
  }

  private length(): number {
    const { random, mtuBytes } = this.lane;
    const kind = random.below(10);
    if (kind === 0) return 0;
    if (kind < 4) return random.between(1, 64);
    if (kind < 7)
      return Math.min(SLOT_BYTES, mtuBytes * random.between(1, 3) + random.between(-2, 2));
    return random.between(1, SLOT_BYTES);
  }

  private outgoing(length: number): { offset: number; length: number; data: Uint8Array } {
    const { start, length: room } = this.own.areas.source;
    const offset = start + this.lane.random.below(room - length + 1);
    return { offset, length, data: this.own.memory.bytes.slice(offset, offset + length) };
  }

  /** On UC and UD what finds no receive is lost: a lane that is spared waits for one. */
  private hasCredit(): boolean {
    const { spared, type, random } = this.lane;
    if (!spared || ((type === 'RC' || type === 'XRC') && random.percent(30))) return true;
    return this.messages.length < this.peer.receives.size;
  }

  private send(length: number): void {
    if (!this.hasCredit()) return;
    const { random, type, qkey } = this.lane;
    const { offset, data } = this.outgoing(length);
    const segments = length > 0 ? [{ offset, length }] : [];
    const { peer } = this;
    const invalidates = peer.windowState === 'open' && random.percent(30);
    const immediate = !invalidates && random.percent(40) ? random.u32() : undefined;
    const key = peer.windowKey;
    this.messages.push({
      data,
      written: undefined,
      immediate,
      invalidates: invalidates ? key : undefined,
    });
    let request: SendRequest = { opcode: WrOpcode.SEND, segments };
    if (immediate !== undefined)
      request = { ...request, opcode: WrOpcode.SEND_WITH_IMM, immediate };
    if (invalidates) {
      peer.windowState = 'closing';
      request = { ...request, opcode: WrOpcode.SEND_WITH_INV, immediate: key };
    }
    if (type === 'UD') {
      const addressHandle = this.addressHandle ?? 0;
      request = { ...request, addressHandle, remoteQpn: peer.qp.qpn, remoteQkey: qkey };
    }
    // READs through the window must have their answers before it goes.
    const flags = (random.percent(30) ? WrFlags.SOLICITED : 0) | (invalidates ? WrFlags.FENCE : 0);
    this.request(request, { what: `SEND of ${length}`, message: true }, flags);
  }

  private write(): void {
    const { peer, lane } = this;
    const { random } = lane;
    const throughWindow = peer.windowState === 'open' && random.percent(50);
    const slot = random.below(throughWindow ? WINDOW_SLOTS : SLOTS);
    const area = throughWindow ? peer.windowArea : peer.areas.target;
    const rkey = throughWindow ? peer.windowKey : peer.regions.target.rkey;
    const start = area.start + slot * SLOT_BYTES;
    const { offset, length, data } = this.outgoing(this.length());
    const turn = ++this.turn;
    const tells = random.percent(30) && this.hasCredit();
    this.turns.set(start, turn);
    if (tells) {
      this.messages.push({ data, written: start, immediate: turn, invalidates: undefined });
    }
    const opcode = tells ? WrOpcode.RDMA_WRITE_WITH_IMM : WrOpcode.RDMA_WRITE;
    const segments = length > 0 ? [{ offset, length }] : [];
    const remoteAddress = peer.base + BigInt(start);
    const done = (): void => {
      // UC has succeeded when its packets have left.
      if (lane.type !== 'UC') this.checkWritten(start, data, turn);
    };
    const rest = { what: `WRITE of ${length}`, message: tells, done };
    this.request({ opcode, segments, remoteAddress, rkey, immediate: turn }, rest);
  }

  /** Unless a later one goes to the same place. */
  private checkWritten(start: number, data: Uint8Array, turn: number): void {
    const { peer } = this;
    if (!this.lane.spared || this.turns.get(start) !== turn) return;
    // Its queue pair is there for as long as it is there itself.
    if (!peer.memory.bytes.subarray(start, start + data.length).every((b, i) => b === data[i])) {
      throw new Violation(`${this.own.name}: spared, and a WRITE has left other bytes`);
    }
  }

  private read(): void {
    const { peer, own, lane } = this;
    const { start: from, length: room } = peer.areas.constant;
    const length = this.length();
    const landing = own.landing(length);
    if (!landing) return;
    const at = from + lane.random.below(room - length + 1);
    const done = (): void => {
      const expected = peer.memory.bytes.subarray(at, at + length);
      if (lane.spared && Buffer.compare(own.bytesAt(landing), expected) !== 0) {
        throw new Violation(`${own.name}: spared, and a READ brought other bytes`);
      }
    };
    this.request(
      {
        opcode: WrOpcode.RDMA_READ,
        segments: [{ offset: landing.start, length, lkey: own.regions.landings.lkey }],
        remoteAddress: peer.base + BigInt(at),
        rkey: peer.regions.constant.rkey,
      },
      { what: `READ of ${length}`, message: false, landing, done },
    );
  }

  private atomic(): void {
    const { peer, own, lane } = this;
    const { random } = lane;
    const landing = own.landing(8);
    if (!landing) return;
    const word = random.below(WORD_COUNT);
    const before = this.words[word] ?? 0n;
    const add = random.percent(50);
    const compareAdd = add || random.percent(30) ? BigInt(random.u32()) : before;
    const swap = BigInt(random.u32());
    const swapped = compareAdd === before ? swap : before;
    this.words[word] = BigInt.asUintN(64, add ? before + compareAdd : swapped);
    const done = (): void => {
      const view = new DataView(own.memory.bytes.buffer, landing.start);
      if (lane.spared && view.getBigUint64(0, true) !== before) {
        throw new Violation(`${own.name}: spared, and an atomic brought another value`);
      }
    };
    this.request(
      {
        opcode: add ? WrOpcode.ATOMIC_FETCH_AND_ADD : WrOpcode.ATOMIC_CMP_AND_SWP,
        segments: [{ offset: landing.start, length: 8, lkey: own.regions.landings.lkey }],
        remoteAddress: peer.base + BigInt(peer.areas.words.start + 8 * word),
        rkey: peer.regions.words.rkey,
        compareAdd,
        swap: add ? 0n : swap,
      },
      { what: 'atomic', message: false, landing, done },
    );
  }

  private request(
    request: SendRequest,
    rest: Omit<Outstanding, 'cookie' | 'signalled'>,
    more = 0,
  ): void {
    const { random } = this.lane;
    const silent = this.silent < MAX_UNSIGNALLED && random.percent(UNSIGNALLED_PERCENT);
    this.silent = silent ? this.silent + 1 : 0;
    const flags = more | (silent ? 0 : WrFlags.SIGNALED);
    const srqn = this.peer.srq?.srqn;
    const all = srqn === undefined ? request : { ...request, xrcSrqn: srqn };
    this.own.post({ ...all, flags }, { ...rest, signalled: !silent });
  }

  /** The peer has received: it must be the next message, as it was sent. */
  check(c: Completion, received: Uint8Array): void {
    const message = this.messages.shift();
    const what = `${this.peer.name}: spared, and a receive`;
    if (!message) throw new Violation(`${what} has no message`);
    const { data, written, immediate, invalidates } = message;
    const wanted = written === undefined ? WcOpcode.RECV : WcOpcode.RECV_RDMA_WITH_IMM;
    const grh = this.lane.type === 'UD' ? GRH_BYTES : 0;
    if (c.opcode !== wanted) throw new Violation(`${what} is of another operation`);
    if (c.byteLength !== data.length + grh) throw new Violation(`${what} has another length`);
    const value = (c.flags & (WcFlags.WITH_IMM | WcFlags.WITH_INV)) !== 0 ? c.immediate : undefined;
    if (value !== (immediate ?? invalidates)) throw new Violation(`${what} has another number`);
    if (written !== undefined) this.checkWritten(written, data, immediate ?? 0);
    else if (Buffer.compare(received.subarray(grh), data) !== 0) {
      throw new Violation(`${what} has other bytes`);
    }
  }
}
