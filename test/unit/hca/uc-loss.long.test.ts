import assert from 'node:assert/strict';
import { QpState, QpType, type QueuePair, WcStatus, WrOpcode } from '../../../core/spi/index.js';
import { SeededRandom } from '../../../providers/mock/index.js';
import {
  type Completion,
  connectUc,
  drain,
  HcaPair,
  postReceive,
  postSend,
  postShared,
} from '../../support/hca-pair.js';

const MTU = 256;
const SLOT_BYTES = 2048;
const SLOTS = 16;
const MESSAGES = 300;
/** Where receives lie, and where WRITEs go: a slot for each of the last few messages. */
const RECEIVES = 0x10000;
const TARGET = 0x40000;

/** The content of a message: its number is in every byte. */
const pattern = (message: number, at: number): number => (message * 31 + at * 7) & 0xff;

interface Message {
  readonly length: number;
  readonly write: boolean;
}

class Run {
  readonly random: SeededRandom;
  readonly pair: HcaPair;
  readonly messages: Message[] = [];
  readonly received: number[] = [];
  private readonly qpA: QueuePair;
  private readonly qpB: QueuePair;
  private readonly free = Array.from({ length: SLOTS }, (_, slot) => slot);
  private held: Uint8Array[] = [];

  constructor(
    seed: number,
    private readonly shared: boolean,
  ) {
    this.random = new SeededRandom(seed);
    this.pair = new HcaPair(seed);
    const { a, b } = this.pair;
    const srq = shared ? b.createSrq({ maxWr: SLOTS }) : undefined;
    this.qpA = a.createQp({ type: QpType.UC });
    this.qpB = b.createQp({ type: QpType.UC, ...(srq && { srq }) });
    connectUc(this.pair, this.qpA, this.qpB, { pathMtuBytes: MTU });
    a.port.filter = (packet) => this.fault(packet);
    this.post = srq
      ? (slot) => postShared(b, srq, slot, [this.buffer(slot)])
      : (slot) => postReceive(b, this.qpB, [this.buffer(slot)], slot);
  }

  readonly post: (slot: number) => void;

  private buffer(slot: number): { offset: number; length: number } {
    return { offset: RECEIVES + slot * SLOT_BYTES, length: SLOT_BYTES };
  }

  /** Loses, repeats and holds back packets; what is held back comes up to eight packets later. */
  private fault(packet: Uint8Array): Uint8Array[] {
    const roll = this.random.below(100);
    if (roll < 4) return [];
    if (roll < 7) return [packet.slice(), packet];
    if (roll < 10) {
      this.held.push(packet.slice());
      return [];
    }
    const late = this.held.length > 0 && roll < 25 ? this.held.splice(0) : [];
    return [packet, ...late];
  }

  step(): void {
    const { random, pair } = this;
    while (this.free.length > random.below(6)) {
      this.post(this.free.splice(random.below(this.free.length), 1)[0]!);
    }
    for (let n = random.between(1, 6); n > 0; n--) this.send();
    pair.run(random.between(1, 50));
    for (const { status } of drain(pair.a.sendCq)) assert.equal(status, WcStatus.SUCCESS);
    for (const completion of drain(pair.b.receiveCq)) this.take(completion);
  }

  private send(): void {
    const { random, pair } = this;
    const message = this.messages.length;
    const write = random.percent(40);
    const length = random.percent(10) ? 0 : random.between(1, SLOT_BYTES);
    this.messages.push({ length, write });
    // The source must stay as it is until the packets have left: a slot for each of a burst.
    const offset = (message % SLOTS) * SLOT_BYTES;
    for (let i = 0; i < length; i++) pair.a.bytes[offset + i] = pattern(message, i);
    postSend(pair.a, this.qpA, {
      opcode: write ? WrOpcode.RDMA_WRITE_WITH_IMM : WrOpcode.SEND_WITH_IMM,
      immediate: message,
      segments: [{ offset, length }],
      remoteAddress: pair.b.base + BigInt(TARGET + (message % SLOTS) * SLOT_BYTES),
      rkey: pair.b.region.rkey,
    });
  }

  private take(c: Completion): void {
    const message = c.immediate;
    const sent = this.messages[message];
    const slot = this.shared ? c.wqeIndex : c.cookie;
    assert.equal(c.status, WcStatus.SUCCESS);
    assert.ok(sent && c.byteLength === sent.length, `message ${message}`);
    assert.ok(message > (this.received.at(-1) ?? -1), 'in order, and once');
    assert.ok(!this.free.includes(slot));
    this.received.push(message);
    this.free.push(slot);
    if (!sent.write) this.compare(message, RECEIVES + slot * SLOT_BYTES, sent.length);
    // A later WRITE may be over it already, but not before its turn comes round.
    else if (this.messages.length - message < SLOTS) {
      this.compare(message, TARGET + (message % SLOTS) * SLOT_BYTES, sent.length);
    }
  }

  private compare(message: number, offset: number, length: number): void {
    for (let i = 0; i < length; i++) {
      assert.equal(this.pair.b.bytes[offset + i], pattern(message, i), `message ${message}, ${i}`);
    }
  }

  /** Nothing outside of receives and targets has changed. */
  checkRest(): void {
    const { bytes } = this.pair.b;
    for (const [from, to] of [
      [0, RECEIVES],
      [RECEIVES + SLOTS * SLOT_BYTES, TARGET],
      [TARGET + SLOTS * SLOT_BYTES, bytes.length],
    ] as const) {
      assert.ok(bytes.subarray(from, to).every((byte) => byte === 0));
    }
    assert.equal(this.qpB.state, QpState.RTS);
  }
}

describe('UC under loss, repetition and reordering', () => {
  for (const shared of [false, true]) {
    const how = shared ? 'a shared receive queue' : 'receives of its own';
    it(`with ${how}: what arrives is whole, in order and comes once`, () => {
      for (let seed = 1; seed <= 25; seed++) {
        const run = new Run(seed, shared);
        while (run.messages.length < MESSAGES) run.step();
        run.checkRest();
        const share = run.received.length / run.messages.length;
        assert.ok(share > 0.3 && share < 0.95, `seed ${seed}: ${share} arrived`);
      }
    });
  }
});
