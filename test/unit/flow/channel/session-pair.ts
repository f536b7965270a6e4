/** Two sessions and the frames between them, as small steps: nothing of it has time or promises. */
import assert from 'node:assert/strict';
import type { Departing } from '../../../../core/flow/channel/departures.js';
import {
  emitFrame,
  FRAME_HEADER_BYTES,
  type FrameKind,
} from '../../../../core/flow/channel/frame.js';
import { ChannelSession, type DepartingFrame } from '../../../../core/flow/channel/session.js';
import type { Subject } from '../../../support/interleaving-search.js';

/** A message of a scenario: its length tells it from the others of its side. */
export interface Piece extends Departing {
  readonly lengthBytes: number;
}

export interface PairScenario {
  /** Receives that each side posts. */
  readonly buffers: readonly [number, number];
  /** Lengths of the messages that each side sends, in order. */
  readonly lengths: readonly [readonly number[], readonly number[]];
  /** The consumer may give up a message. */
  readonly givesUp?: boolean;
  /** Only this side's consumer takes messages when all comes to rest; default both. */
  readonly takes?: 0 | 1;
}

/** Bytes of a piece of a message in one frame. */
const PAYLOAD_BYTES = 8;

class Side {
  readonly session: ChannelSession<Piece>;
  readonly pieces: Piece[] = [];
  /** Receives posted. */
  posted: number;
  /** Frames on the way to this side. */
  readonly coming: Uint8Array[] = [];
  /** Frames that wait to be taken. */
  readonly held: {
    readonly kind: FrameKind;
    readonly remaining: number;
    readonly bytes: number;
  }[] = [];
  /** Bytes of the message that is being put together. */
  partial = 0;
  readonly delivered: number[] = [];
  ended = false;

  constructor(own: number, peer: number) {
    const limits = (
      buffers: number,
    ): { buffers: number; bufferBytes: number; maxMessageBytes: number } => ({
      buffers,
      bufferBytes: FRAME_HEADER_BYTES + PAYLOAD_BYTES,
      maxMessageBytes: 1000,
    });
    this.session = new ChannelSession(limits(own), limits(peer));
    this.posted = own;
  }

  take(): void {
    const frame = this.held.shift();
    if (frame === undefined) return;
    if (frame.kind === 'ABANDON') this.partial = 0;
    else if (frame.kind === 'END') this.ended = true;
    else {
      this.partial += frame.bytes;
      if (frame.remaining === frame.bytes) {
        this.delivered.push(this.partial);
        this.partial = 0;
      }
    }
    this.post(frame.kind);
  }

  post(kind: FrameKind): void {
    this.posted++;
    this.session.posted(kind);
  }
}

export class SessionPair implements Subject {
  readonly sides: readonly [Side, Side];
  private readonly unsent: [number[], number[]];
  private readonly endAsked = [false, false];

  constructor(private readonly scenario: PairScenario) {
    const [a, b] = scenario.buffers;
    this.sides = [new Side(a, b), new Side(b, a)];
    this.unsent = [[...scenario.lengths[0]], [...scenario.lengths[1]]];
  }

  steps(): readonly string[] {
    const steps: string[] = [];
    this.sides.forEach((side, at) => {
      if (this.unsent[at]!.length > 0) steps.push(`send ${at}`);
      else if (!this.endAsked[at]) steps.push(`end ${at}`);
      if (this.canPost(at)) steps.push(`post ${at}`);
      if (side.coming.length > 0) steps.push(`arrive ${at}`);
      if (side.held.length > 0) steps.push(`take ${at}`);
      if (this.scenario.givesUp !== true) return;
      side.pieces.forEach(({ stage }, i) => {
        if (stage === 'WAITING' || stage === 'BEGUN') steps.push(`give-up ${at} ${i}`);
      });
    });
    return steps;
  }

  async take(step: string): Promise<void> {
    const [what, at, i] = step.split(' ');
    const index = Number(at);
    const side = this.sides[index]!;
    if (what === 'send') this.send(index);
    else if (what === 'end') this.end(index);
    else if (what === 'post') this.post(index);
    else if (what === 'arrive') this.arrive(index);
    else if (what === 'take') side.take();
    else side.session.departures.giveUp(side.pieces[Number(i)]!);
    this.check();
  }

  fingerprint(): string {
    const each = this.sides.map((side, at) => [
      { ...side.session.credits },
      { ...side.session.arrivals },
      side.session.departures.isOpen,
      side.session.departures.hasEnded,
      side.pieces,
      side.posted,
      side.coming.map((frame) => frame.join()),
      side.held,
      side.partial,
      side.delivered,
      side.ended,
      this.unsent[at],
    ]);
    return JSON.stringify(each);
  }

  async finish(): Promise<void> {
    for (const at of [0, 1]) {
      while (this.unsent[at]!.length > 0) this.send(at);
      if (!this.endAsked[at]) this.end(at);
    }
    const { takes } = this.scenario;
    if (takes !== undefined) {
      this.rest([takes]);
      this.assertDelivered(takes);
    }
    this.rest([0, 1]);
    for (const at of [0, 1]) this.assertDelivered(at);
  }

  private send(at: number): void {
    const { session, pieces } = this.sides[at]!;
    const piece: Piece = { lengthBytes: this.unsent[at]!.shift()!, sentBytes: 0, stage: 'WAITING' };
    pieces.push(piece);
    session.departures.add(piece);
  }

  private end(at: number): void {
    this.endAsked[at] = true;
    this.sides[at]!.session.departures.finish();
  }

  private canPost(at: number): boolean {
    const { credits, departures } = this.sides[at]!.session;
    const next = departures.next();
    return (next !== undefined && credits.maySend(next.kind)) || credits.maySend('CREDIT');
  }

  private post(at: number): void {
    const frame: DepartingFrame<Piece> | undefined = this.sides[at]!.session.next();
    assert.ok(frame, 'a frame that may leave leaves');
    const data = new Uint8Array(FRAME_HEADER_BYTES + frame.payloadBytes);
    emitFrame(frame, data);
    this.sides[1 - at]!.coming.push(data);
  }

  private arrive(at: number): void {
    const side = this.sides[at]!;
    const data = side.coming.shift()!;
    assert.ok(side.posted > 0, 'a frame meets an RNR NAK');
    side.posted--;
    const { kind, remainingBytes: remaining } = side.session.arrived(data);
    if (kind === 'CREDIT') side.post(kind);
    else side.held.push({ kind, remaining, bytes: data.length - FRAME_HEADER_BYTES });
  }

  /** Everything that happens by itself, until nothing does; only these consumers take. */
  private rest(takers: readonly number[]): void {
    for (let steps = 0; ; steps++) {
      assert.ok(steps < 1000, 'two idle sides do not come to rest');
      const at = [0, 1].find((side) => this.canPost(side));
      const arriving = [0, 1].find((side) => this.sides[side]!.coming.length > 0);
      const taking = takers.find((side) => this.sides[side]!.held.length > 0);
      if (arriving !== undefined) this.arrive(arriving);
      else if (taking !== undefined) this.sides[taking]!.take();
      else if (at !== undefined) this.post(at);
      else return;
      this.check();
    }
  }

  private assertDelivered(at: number): void {
    const expected = this.sides[1 - at]!.pieces.filter(({ stage }) => stage === 'GONE').map(
      ({ lengthBytes }) => lengthBytes,
    );
    const stuck = this.sides[1 - at]!.pieces.filter(({ stage }) => !/GONE|VOID/.test(stage));
    assert.equal(stuck.length, 0, `messages to side ${at} are stuck`);
    assert.deepEqual(this.sides[at]!.delivered, expected, `what side ${at} has received`);
    assert.ok(this.sides[at]!.ended, `side ${at} does not hear of the end`);
  }

  private check(): void {
    for (const { session, posted, held } of this.sides) {
      const { available, owed } = session.credits;
      assert.ok(available >= 0 && owed >= 0, 'credits are negative');
      assert.ok(posted + held.length >= 1 && posted >= 0, 'a receive is lost');
    }
  }
}
