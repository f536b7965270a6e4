/** Two sessions, the memory they write to, and the messages between them, as small steps. */
import assert from 'node:assert/strict';
import { type Outgoing, Session } from '../../../../../samples/ulp/rsocket/session/index.js';
import type {
  ConnectionData,
  IomapEntry,
  RemoteRegion,
} from '../../../../../samples/ulp/rsocket/wire/index.js';
import type { Subject } from '../../../../support/interleaving-search.js';

export interface PairScenario {
  /** Bytes of each half of a receive buffer, and messages that may wait. */
  readonly halfBytes: number;
  readonly credits: number;
  /** Bytes that each side writes, a message at a time. */
  readonly writes: readonly [readonly number[], readonly number[]];
  /** Instead of ending its writing, this side closes. */
  readonly closes?: 0 | 1;
}

/** What arrives: a change of memory, and the message that tells of it. */
interface Arriving {
  readonly immediate: number;
  readonly writtenBytes: number;
  readonly write?: () => void;
}

const BASE = 1_000_000n;

class Side {
  readonly session: Session;
  readonly memory: Uint8Array;
  readonly list: (RemoteRegion | undefined)[] = [undefined, undefined];
  readonly coming: Arriving[] = [];
  /** Messages that need no credit and were not acknowledged. */
  written = 0;
  read = 0;
  hasAskedForEnd = false;
  hasClosed = false;

  constructor(
    readonly scenario: PairScenario,
    readonly unwritten: number[],
  ) {
    const { halfBytes, credits } = scenario;
    this.memory = new Uint8Array(2 * halfBytes);
    this.session = new Session({ halfBytes, credits, iomapSlots: 0 }, Side.data(scenario));
  }

  static data({ halfBytes, credits }: PairScenario): ConnectionData {
    return {
      isBigEndian: false,
      credits,
      iomapSlots: 0,
      targetList: { address: 0n, key: 1, length: 2 },
      buffer: { address: BASE, key: 2, length: halfBytes },
    };
  }

  target(slot: number): RemoteRegion {
    return this.list[slot] as RemoteRegion;
  }

  iomap(): IomapEntry {
    throw new Error('no area was announced');
  }
}

export class SessionPair implements Subject {
  readonly sides: readonly [Side, Side];

  constructor(private readonly scenario: PairScenario) {
    const [one, other] = scenario.writes;
    this.sides = [new Side(scenario, [...one]), new Side(scenario, [...other])];
  }

  steps(): readonly string[] {
    return this.sides.flatMap((side, at) => {
      const steps: string[] = [];
      if (side.unwritten.length > 0 && side.session.sendable > 0) steps.push(`write ${at}`);
      if (side.unwritten.length === 0 && !side.hasAskedForEnd) steps.push(`end ${at}`);
      if (this.isPosting(side)) steps.push(`post ${at}`);
      if (side.coming.length > 0) steps.push(`arrive ${at}`);
      if (side.session.readable > 0 && !side.hasClosed) steps.push(`read ${at}`);
      return steps;
    });
  }

  async take(step: string): Promise<void> {
    const [what, number] = step.split(' ');
    const at = Number(number);
    if (what === 'write') this.write(at);
    else if (what === 'end') this.end(at);
    else if (what === 'post') this.post(at);
    else if (what === 'arrive') this.arrive(at);
    else this.read(at);
  }

  fingerprint(): string {
    return JSON.stringify(
      this.sides.map(({ session, memory, list, coming, written, read, unwritten, ...rest }) => [
        // A text of the bytes alone: JSON names the index of each.
        [session, memory.join(), list, written, read, unwritten],
        coming.map(({ immediate }) => immediate),
        [rest.hasAskedForEnd, rest.hasClosed],
      ]),
      (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value),
    );
  }

  async finish(): Promise<void> {
    for (let steps = 0; ; steps++) {
      assert.ok(steps < 10_000, 'two idle sides do not come to rest');
      const next = this.steps()[0];
      if (next === undefined) break;
      await this.take(next);
    }
    const isCutOff = this.scenario.closes !== undefined;
    this.sides.forEach(({ session, read, unwritten }, at) => {
      assert.ok(isCutOff || unwritten.length === 0, `side ${at} is stuck with bytes to write`);
      const { written } = this.sides[1 - at]!;
      assert.ok(isCutOff || read === written, `side ${at} read ${read} of ${written} bytes`);
      assert.ok(isCutOff || session.hasEnded, `side ${at} does not hear of the end`);
    });
  }

  private write(at: number): void {
    const side = this.sides[at]!;
    const peer = this.sides[1 - at]!;
    const { session, unwritten } = side;
    const bytes = Math.min(unwritten[0]!, session.sendable);
    const from = Number(session.target.address - BASE) + session.targetOffset;
    const values = Array.from({ length: bytes }, (_, i) => (side.written + i + 1) & 0xff);
    side.written += bytes;
    if (bytes === unwritten[0]) unwritten.shift();
    else unwritten[0]! -= bytes;
    const immediate = session.sendData(bytes);
    const write = (): void => {
      assert.ok(from + bytes <= peer.memory.length, 'a write is within the buffer');
      peer.memory.set(values, from);
    };
    peer.coming.push({ immediate, writtenBytes: bytes, write });
  }

  private end(at: number): void {
    const side = this.sides[at]!;
    side.hasAskedForEnd = true;
    if (this.scenario.closes === at) {
      side.hasClosed = true;
      side.session.close();
    } else side.session.shutdown();
  }

  private isPosting({ session }: Side): boolean {
    return session.isEnding || session.isGrantDue;
  }

  private post(at: number): void {
    const { session } = this.sides[at]!;
    const peer = this.sides[1 - at]!;
    const out: Outgoing | undefined = session.next(true);
    assert.ok(out !== undefined, 'what is due can be posted');
    const { immediate } = out;
    if (out.type === 'target') {
      const { slot, offset } = out;
      const entry = { address: BASE + BigInt(offset), key: 2, length: this.scenario.halfBytes };
      const write = (): void => void (peer.list[slot] = entry);
      peer.coming.push({ immediate, writtenBytes: 16, write });
    } else peer.coming.push({ immediate, writtenBytes: 0 });
    session.controlSent();
  }

  private arrive(at: number): void {
    const side = this.sides[at]!;
    const { immediate, writtenBytes, write } = side.coming.shift()!;
    write?.();
    side.session.receive(immediate, writtenBytes, side);
    assert.ok(
      side.session.unread <= 2 * this.scenario.halfBytes,
      'no more waits than there is room',
    );
  }

  /** A byte at a time: messages are read in parts. */
  private read(at: number): void {
    const side = this.sides[at]!;
    const { readOffset } = side.session;
    assert.equal(
      side.memory[readOffset],
      (side.read + 1) & 0xff,
      `byte ${side.read} of side ${at}`,
    );
    side.session.read(1);
    side.read++;
  }
}
