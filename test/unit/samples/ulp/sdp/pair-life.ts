/**
 * One random life of two sessions, by seed: writes, reads, urgent bytes, half closes, closes,
 * aborts, passing time, kills, in any order and in all modes. What it finds wrong is returned, in
 * words.
 */
import { SeededRandom } from '../../../../../providers/mock/index.js';
import type { SessionConfig } from '../../../../../samples/ulp/sdp/session/index.js';
import type { TapEvent } from '../../../../../samples/ulp/sdp/index.js';
import {
  emitHello,
  emitHelloAck,
  type Mode,
  MODES,
  VERSION,
} from '../../../../../samples/ulp/sdp/wire/index.js';
import { Judge } from './judge.js';
import { PairHost } from './pair-host.js';

const STEPS = 400;
/** Steps until everything must have settled once nothing new begins. */
const PATIENCE = 200_000;
const HOSTILE_PATIENCE = 3000;

type Name = 'A' | 'B';

/** What one side has written, and what has come of it at the other. */
class Direction {
  readonly written: number[] = [];
  readonly urgentSent: number[] = [];
  read = 0;
  hasShutDown = false;
  isWriting = false;
  isTorn = false;
  wasDone = 0;
  begun = 0;
}

export interface LifeOptions {
  /** May break a session before it begins: a planted bug. */
  readonly plant?: (hosts: readonly PairHost[]) => void;
  /** Nothing is aborted, killed or closed before all is read. */
  readonly isGentle?: boolean;
  /**
   * A side says what it likes: what must hold is that the other one ends once, and leaves nothing.
   */
  readonly isHostile?: boolean;
}

export class PairLife {
  readonly faults: string[] = [];
  readonly hosts: readonly [PairHost, PairHost];
  /** Modes that a half was in. */
  readonly modesSeen = new Set<Mode>();
  readonly kindsSeen = new Map<number, number>();
  private readonly random: SeededRandom;
  private readonly clock = { now: 1 };
  private readonly directions: readonly [Direction, Direction] = [new Direction(), new Direction()];
  private readonly closed = [false, false];
  private readonly judge = new Judge();

  constructor(
    seed: number,
    private readonly options: LifeOptions = {},
  ) {
    this.random = new SeededRandom(seed);
    const sizes = [this.sizes(), this.sizes()] as const;
    const make = (name: Name, own: number): PairHost => {
      const mine = sizes[own] as Sizes;
      const other = sizes[1 - own] as Sizes;
      const side = {
        name,
        requests: 12 + this.below(30),
        areas: 1 + this.below(6),
        areaBytes: 64 + this.below(600),
        cannotExpose: this.below(10) === 0,
      };
      return new PairHost(side, this.clock, configOf(mine, other));
    };
    this.hosts = [make('A', 0), make('B', 1)];
    const [a, b] = this.hosts;
    a.peer = b;
    b.peer = a;
    this.hosts.forEach((host, i) => {
      host.tap = (phase, event) => {
        if (phase === 'sent' && event.kind === 'message') {
          const mid = event.bytes[0] as number;
          this.kindsSeen.set(mid, (this.kindsSeen.get(mid) ?? 0) + 1);
        }
        this.judge.observe(host.side.name, phase, event);
      };
      host.onReadableTest = () => {
        if (this.below(3) > 0) this.readSome(i);
      };
    });
    this.greet(sizes);
    options.plant?.(this.hosts);
  }

  /** What the second model has found. */
  get judged(): readonly string[] {
    return this.judge.model.violations;
  }

  /** @returns what is wrong */
  run(): string[] {
    try {
      for (let i = 0; i < STEPS; i++) this.step();
      this.settle();
    } catch (error) {
      this.faults.push(`threw ${(error as Error).stack ?? String(error)}`);
    }
    for (const host of this.hosts) this.faults.push(...host.faults);
    this.check();
    const { isGentle, isHostile } = this.options;
    if (isHostile === true) return this.faults;
    if (isGentle === true) this.faults.push(...this.judge.verdict());
    else this.faults.push(...this.judge.model.violations);
    return this.faults;
  }

  /** The messages of the CM that have brought these two together. */
  private greet([a, b]: readonly [Sizes, Sizes]): void {
    const common = { version: VERSION, isIpv6: false };
    const hello = emitHello({
      ...{ ...common, bufs: a.receives, maxAdverts: a.maxAdverts, localBytes: a.receiveBytes },
      ...{ desiredRemoteBytes: a.wantedPeerBytes, localPort: 1 },
      ...{ source: new Uint8Array(16), destination: new Uint8Array(16) },
    });
    const ack = emitHelloAck({
      ...{ ...common, bufs: b.receives, maxAdverts: b.maxAdverts, actualBytes: b.receiveBytes },
    });
    const tell = (name: Name, phase: 'sent' | 'arrived', event: TapEvent): void =>
      this.judge.observe(name, phase, event);
    tell('A', 'sent', { kind: 'receivesPosted', count: a.receives });
    tell('B', 'sent', { kind: 'receivesPosted', count: b.receives });
    tell('A', 'sent', { kind: 'message', bytes: hello });
    tell('B', 'arrived', { kind: 'message', bytes: hello });
    tell('B', 'sent', { kind: 'message', bytes: ack });
    tell('A', 'arrived', { kind: 'message', bytes: ack });
  }

  private step(): void {
    const i = this.below(2);
    const host = this.hosts[i] as PairHost;
    const choice = this.below(100);
    if (choice < 40) host.deliver();
    else if (choice < 60) host.complete();
    else if (choice < 75) this.readSome(i);
    else if (choice < 92) this.writeSome(i);
    else if (choice < 95) this.urgent(i);
    else if (choice < 97) this.pass();
    else if (choice === 97) this.maybe(6, () => this.shutDown(i));
    else if (this.options.isGentle === true) this.pass();
    else if (choice === 98) this.maybe(12, () => this.close(i));
    else this.maybe(40, () => this.kill(i));
    for (const { session } of this.hosts) {
      this.modesSeen.add(session.source.mode);
      if (session.credits.available < 0) this.faults.push('credits below 0');
      if (session.source.isEnded && session.source.outstanding > 0) {
        this.faults.push('a SrcAvail is outstanding behind DisConn');
      }
    }
  }

  private writeSome(i: number): void {
    const direction = this.directions[i] as Direction;
    const host = this.hosts[i] as PairHost;
    if (direction.isWriting || direction.hasShutDown || this.isOver(i) || this.closed[i]) return;
    const chunks = Array.from({ length: 1 + this.below(4) }, () => {
      const chunk = new Uint8Array(this.below(4) === 0 ? this.below(4000) : this.below(200));
      for (let at = 0; at < chunk.length; at++) {
        chunk[at] = this.below(256);
        direction.written.push(chunk[at] as number);
      }
      return chunk;
    });
    if (chunks.every(({ length }) => length === 0)) return;
    direction.isWriting = true;
    direction.begun++;
    host.session.write(chunks, (failure) => {
      direction.isWriting = false;
      direction.wasDone++;
      if (failure !== undefined) direction.isTorn = true;
      // Its memory may be used for other things.
      for (const chunk of chunks) chunk.fill(0xdd);
    });
  }

  private readSome(i: number): void {
    const { session, side } = this.hosts[i] as PairHost;
    const direction = this.directions[1 - i] as Direction;
    let left = this.below(5) === 0 ? 100_000 : this.below(700);
    for (let bytes = session.sink.peek(); bytes !== undefined; bytes = session.sink.peek()) {
      const length = Math.min(left, bytes.length);
      if (length === 0) return;
      for (let at = 0; at < length; at++) {
        const place = direction.read + at;
        if (bytes[at] === direction.written[place] || this.options.isHostile === true) continue;
        this.faults.push(`${side.name}: byte ${place} is not what was written`);
        return;
      }
      direction.read += length;
      left -= length;
      session.consume(length);
    }
  }

  private urgent(i: number): void {
    const direction = this.directions[i] as Direction;
    if (direction.hasShutDown || this.isOver(i) || this.closed[i]) return;
    const byte = this.below(256);
    direction.urgentSent.push(byte);
    (this.hosts[i] as PairHost).session.sendUrgent(byte);
  }

  private shutDown(i: number): void {
    const direction = this.directions[i] as Direction;
    if (direction.hasShutDown || direction.isWriting || this.isOver(i) || this.closed[i]) return;
    direction.hasShutDown = true;
    (this.hosts[i] as PairHost).session.shutdown(() => undefined);
  }

  private close(i: number): void {
    this.closed[i] = true;
    (this.directions[1 - i] as Direction).isTorn = true;
    (this.directions[i] as Direction).isTorn ||= (this.directions[i] as Direction).isWriting;
    (this.directions[i] as Direction).hasShutDown = true;
    const { session } = this.hosts[i] as PairHost;
    if (this.below(4) === 0) session.abort();
    else session.close();
    if (session.state === 'CLOSED') for (const d of this.directions) d.isTorn = true;
  }

  private kill(i: number): void {
    for (const d of this.directions) d.isTorn = true;
    (this.hosts[i] as PairHost).endLink('killed');
    (this.hosts[1 - i] as PairHost).endLink('killed');
  }

  private pass(): void {
    this.clock.now += this.below(400);
    for (const { session } of this.hosts) session.tick();
  }

  /** Nothing new begins: what is under way ends. */
  private settle(): void {
    for (let i = 0; i < PATIENCE; i++) {
      for (const side of [0, 1]) {
        const host = this.hosts[side] as PairHost;
        host.deliver();
        host.complete();
        this.readSome(side);
        if (!(this.directions[side] as Direction).isWriting) this.shutDown(side);
      }
      if (this.hosts.every((_, side) => this.isOver(side))) {
        this.readAll();
        return;
      }
      if (this.isIdle()) this.pass();
      // A peer that has lied about its receives may keep this side waiting; closing ends that.
      if (this.options.isHostile === true && i === HOSTILE_PATIENCE) {
        for (const { session } of this.hosts) session.close();
      }
    }
    const states = this.hosts.map(({ session, side, flights }) => {
      const { state, source, sink, credits } = session;
      const told = `${source.mode} ${source.outstanding}/${sink.outstandingOffers}`;
      return `${side.name} ${state} ${told} credits ${credits.available} flights ${flights.length}`;
    });
    this.faults.push(`does not settle: ${states.join(', ')}`);
  }

  /** What has come can be read behind the end. */
  private readAll(): void {
    for (const side of [0, 1]) {
      const { sink } = (this.hosts[side] as PairHost).session;
      while (sink.hasBytes && this.faults.length === 0) this.readSome(side);
    }
  }

  private isIdle(): boolean {
    return this.hosts.every(
      ({ flights, completions }) => flights.length === 0 && completions.length === 0,
    );
  }

  private check(): void {
    if (this.options.isHostile !== true) this.checkBytes();
    this.checkLeft();
  }

  private checkBytes(): void {
    this.directions.forEach((direction, i) => {
      const { written, read, isTorn, urgentSent } = direction;
      const receiver = this.hosts[1 - i] as PairHost;
      const [failure] = receiver.overs;
      if (isTorn || this.closed[0] || this.closed[1]) return;
      if (failure !== undefined) this.faults.push(`ended by ${failure.code}: ${failure.detail}`);
      if (read !== written.length) this.faults.push(`${read} of ${written.length} bytes came`);
      if (String(urgentSent) !== String(receiver.urgent)) this.faults.push('urgent bytes differ');
    });
  }

  private checkLeft(): void {
    for (const { begun, wasDone } of this.directions) {
      if (begun !== wasDone) this.faults.push(`${begun - wasDone} writes did not end`);
    }
    for (const { keysOpen, side, areasTaken, session } of this.hosts) {
      if (keysOpen > 0) this.faults.push(`${side.name} leaves ${keysOpen} keys open`);
      if (session.source.outstanding > 0) this.faults.push(`${side.name} leaves a SrcAvail`);
      if (areasTaken > 0 && !session.sink.hasBytes) {
        this.faults.push(`${side.name} leaves ${areasTaken} areas`);
      }
    }
  }

  private isOver(i: number): boolean {
    return (this.hosts[i] as PairHost).overs.length > 0;
  }

  private maybe(oneIn: number, act: () => void): void {
    if (this.below(oneIn) === 0) act();
  }

  private below(limit: number): number {
    return this.random.below(limit);
  }

  private sizes(): Sizes {
    const receiveBytes = 64 + this.below(400);
    return {
      receives: 4 + this.below(12),
      receiveBytes,
      maxReceiveBytes: receiveBytes + this.below(300),
      wantedPeerBytes: 100 + this.below(600),
      maxAdverts: 1 + this.below(4),
      most: MODES[this.below(4) === 0 ? this.below(3) : 2] as Mode,
      offersSink: this.below(2) === 0,
      thresholdBytes: 20 + this.below(300),
      advertBytes: 50 + this.below(2000),
    };
  }
}

interface Sizes {
  readonly receives: number;
  readonly receiveBytes: number;
  readonly maxReceiveBytes: number;
  readonly wantedPeerBytes: number;
  readonly maxAdverts: number;
  readonly most: Mode;
  readonly offersSink: boolean;
  readonly thresholdBytes: number;
  readonly advertBytes: number;
}

function configOf(own: Sizes, peer: Sizes): SessionConfig {
  const { receives, receiveBytes, maxReceiveBytes, wantedPeerBytes, maxAdverts } = own;
  const { most, offersSink, thresholdBytes, advertBytes } = own;
  return {
    ...{ receives, receiveBytes, maxReceiveBytes, wantedPeerBytes, maxAdverts },
    peer: { bufs: peer.receives, receiveBytes: peer.receiveBytes, maxAdverts: peer.maxAdverts },
    zeroCopy: { most, offersSink, thresholdBytes, advertBytes },
    times: { advertMs: 1000, cancelMs: 60_000, finMs: 5000 },
  };
}
