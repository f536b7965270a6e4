/**
 * A host of a session without a network: what one side posts is a queue that the test delivers
 * from. It holds what a real one would: receives and their sizes, keys of memory, requests under
 * way. What an honest session never does (a message without a receive, a key that is not valid) is
 * a fault.
 */
import {
  type Area,
  type Exposed,
  type Failure,
  type Outgoing,
  Session,
  type SessionConfig,
  type SessionHost,
} from '../../../../../samples/ulp/sdp/session/index.js';
import { emitHead, headBytes } from '../../../../../samples/ulp/sdp/wire/index.js';
import type { TapEvent } from '../../../../../samples/ulp/sdp/index.js';

/** Something on its way to the peer. */
type Flight =
  | { readonly kind: 'message'; readonly bytes: Uint8Array }
  | { readonly kind: 'write'; readonly bytes: Uint8Array; readonly rkey: number; at: bigint }
  | {
      readonly kind: 'read';
      readonly area: PairArea;
      readonly length: number;
      rkey: number;
      at: bigint;
    }
  | { readonly kind: 'probe' }
  | { readonly kind: 'disconnect' };

export interface Side {
  readonly name: 'A' | 'B';
  /** Requests that may be posted at a time. */
  readonly requests: number;
  readonly areas: number;
  readonly areaBytes: number;
  /** Bytes that lie together cannot be registered. */
  readonly cannotExpose?: boolean;
}

class PairArea implements Area {
  readonly bytes: Uint8Array;
  isUnderWay = false;

  constructor(
    private readonly host: PairHost,
    bytes: number,
  ) {
    this.bytes = new Uint8Array(bytes);
  }

  expose(): Exposed | undefined {
    return this.host.open(this.bytes);
  }

  release(): void {
    this.host.areasTaken--;
  }
}

export class PairHost implements SessionHost {
  session!: Session;
  peer!: PairHost;
  /** To the peer, in order. */
  readonly flights: Flight[] = [];
  /** Completions that this side has not looked at. */
  readonly completions: (() => void)[] = [];
  readonly faults: string[] = [];
  readonly urgent: number[] = [];
  readonly slots: Uint8Array[] = [];
  readonly posted: number[] = [];
  areasTaken = 0;
  requestsUsed = 0;
  isLinkOver = false;
  overs: (Failure | undefined)[] = [];
  onReadableTest: () => void = () => undefined;
  /** What comes of a message on its way to this side: a peer that is hostile. */
  mutate: ((bytes: Uint8Array) => Uint8Array) | undefined = undefined;
  tap: (phase: 'sent' | 'arrived', event: TapEvent) => void = () => undefined;
  private readonly keys = new Map<number, { bytes: Uint8Array; address: bigint }>();
  private nextKey: number;

  constructor(
    readonly side: Side,
    private readonly clock: { now: number },
    config: SessionConfig,
  ) {
    this.nextKey = side.name === 'A' ? 0xa000_0000 : 0xb000_0000;
    for (let slot = 0; slot < config.receives; slot++) {
      this.slots.push(new Uint8Array(config.receiveBytes));
      this.posted.push(slot);
    }
    this.session = new Session(this, config);
  }

  now(): number {
    return this.clock.now;
  }

  get requestsFree(): number {
    return this.isLinkOver ? 0 : this.side.requests - this.requestsUsed;
  }

  get keysOpen(): number {
    return this.keys.size;
  }

  post({ body, sequence, payload, payloadBytes }: Outgoing): void {
    const bytes = new Uint8Array(headBytes(body.mid) + payloadBytes);
    let at = emitHead(bytes, body, sequence, payloadBytes);
    for (const piece of payload) {
      bytes.set(piece, at);
      at += piece.length;
    }
    if (at !== bytes.length) this.faults.push(`${this.side.name}: payload of another length`);
    if (this.session.credits.available < 0) this.faults.push('credits below 0');
    this.tap('sent', { kind: 'message', bytes });
    this.launch({ kind: 'message', bytes });
  }

  repost(slot: number, bytes: number): void {
    if (this.posted.includes(slot)) this.faults.push(`receive ${slot} posted twice`);
    if ((this.slots[slot] as Uint8Array).length < bytes) this.slots[slot] = new Uint8Array(bytes);
    else (this.slots[slot] as Uint8Array).fill(0xee);
    this.posted.push(slot);
    this.tap('sent', { kind: 'receivesPosted', count: 1 });
  }

  exposeSource(bytes: Uint8Array): Exposed | undefined {
    return this.side.cannotExpose === true ? undefined : this.open(bytes);
  }

  takeArea(): Area | undefined {
    if (this.areasTaken === this.side.areas) return undefined;
    this.areasTaken++;
    return new PairArea(this, this.side.areaBytes);
  }

  rdmaRead(area: Area, length: number, from: { rkey: number; address: bigint }): void {
    const { rkey, address } = from;
    this.tap('sent', { kind: 'rdmaRead', length, remoteAddress: address, rkey });
    this.launch({ kind: 'read', area: area as PairArea, length, rkey, at: address });
  }

  rdmaWrite(bytes: Uint8Array, to: { rkey: number; address: bigint }): boolean {
    if (this.side.cannotExpose === true) return false;
    const { rkey, address } = to;
    this.tap('sent', { kind: 'rdmaWrite', length: bytes.length, remoteAddress: address, rkey });
    this.launch({ kind: 'write', bytes, rkey, at: address });
    return true;
  }

  probe(): void {
    this.launch({ kind: 'probe' });
  }

  disconnect(): void {
    if (this.isLinkOver || this.flights.some(({ kind }) => kind === 'disconnect')) return;
    this.flights.push({ kind: 'disconnect' });
  }

  cut(): void {
    this.isLinkOver = true;
    this.flights.length = 0;
    this.completions.length = 0;
    this.peer.endLink('killed');
  }

  onReadable(): void {
    this.onReadableTest();
  }

  onUrgent(byte: number): void {
    this.urgent.push(byte);
  }

  onOver(failure?: Failure): void {
    this.overs.push(failure);
    if (this.overs.length > 1) this.faults.push(`${this.side.name} is over twice`);
  }

  open(bytes: Uint8Array): Exposed {
    const rkey = this.nextKey++;
    const address = BigInt(rkey) << 20n;
    this.keys.set(rkey, { bytes, address });
    return { rkey, address, release: () => void this.keys.delete(rkey) };
  }

  /** Delivers the oldest thing that this side has sent. */
  deliver(): void {
    const flight = this.flights.shift();
    const { peer } = this;
    if (flight === undefined) return;
    if (flight.kind === 'disconnect') {
      this.isLinkOver = true;
      peer.endLink('disconnected');
      this.endLink('disconnected');
      return;
    }
    if (this.isLinkOver) return;
    switch (flight.kind) {
      case 'message':
        this.completions.push(() => undefined);
        peer.arrive(flight.bytes);
        return;
      case 'write': {
        const memory = peer.reach(flight.rkey, flight.at, flight.bytes.length);
        memory?.set(flight.bytes);
        this.completions.push(() => this.session.onWriteDone(flight.bytes.length));
        return;
      }
      case 'read': {
        const memory = peer.reach(flight.rkey, flight.at, flight.length);
        if (memory !== undefined) flight.area.bytes.set(memory);
        this.completions.push(() => this.session.onReadDone());
        return;
      }
      case 'probe':
        this.completions.push(() => this.session.onProbeDone());
    }
  }

  /** This side looks at its oldest completion. */
  complete(): void {
    const done = this.completions.shift();
    if (done === undefined || this.isLinkOver) return;
    this.requestsUsed--;
    done();
    this.session.pump();
  }

  /** The connection of the CM has gone: all that was under way is flushed. */
  endLink(how: 'disconnected' | 'killed'): void {
    this.isLinkOver = true;
    this.flights.length = 0;
    this.completions.length = 0;
    this.tap('arrived', { kind: how });
    this.session.onDisconnected();
  }

  private launch(flight: Flight): void {
    if (this.isLinkOver) this.faults.push(`${this.side.name} posts after the end`);
    if (this.requestsFree <= 0) this.faults.push(`${this.side.name} posts more than it may`);
    this.requestsUsed++;
    this.flights.push(flight);
  }

  private arrive(bytes: Uint8Array): void {
    const slot = this.posted.shift();
    if (slot === undefined) {
      this.breach(`${this.side.name} has no receive for a message`);
      return;
    }
    const buffer = this.slots[slot] as Uint8Array;
    const came = this.mutate?.(bytes) ?? bytes;
    if (came.length > buffer.length) {
      this.breach(`${came.length} bytes for a receive of ${buffer.length}`);
      return;
    }
    buffer.set(came);
    this.tap('arrived', { kind: 'message', bytes: came });
    this.session.receive(slot, buffer.subarray(0, came.length));
  }

  /** The device ends the connection of a peer that does so; between honest ones it is a fault. */
  private breach(what: string): void {
    if (this.mutate === undefined && this.peer.mutate === undefined) this.faults.push(what);
    this.peer.endLink('killed');
    this.endLink('killed');
  }

  private reach(rkey: number, at: bigint, length: number): Uint8Array | undefined {
    const region = this.keys.get(rkey);
    if (region === undefined && this.overs.length > 0) {
      // It was aborted, and closed its memory: that breaks the connection.
      this.peer.endLink('killed');
      this.endLink('killed');
      return undefined;
    }
    const offset = region === undefined ? -1 : Number(at - region.address);
    if (region === undefined || offset < 0 || offset + length > region.bytes.length) {
      this.breach(`${this.side.name}: ${length} bytes by key ${rkey.toString(16)}: not open`);
      return undefined;
    }
    return region.bytes.subarray(offset, offset + length);
  }
}
