/** What an endpoint of the DAT simulation posts: a random mix over all operations. */
import {
  CompletionFlags,
  type LmrSegment,
  MemPrivileges,
  type Pz,
  RemoteSegment,
  type Rmr,
} from '../../core/index.js';
import type { DatEndpoint, DatWorld } from './dat-endpoint.js';

export const SLOTS = 16;
export const SLOT_BYTES = 3000;
const AREA_BYTES = SLOTS * SLOT_BYTES;
/** Receives and landings lie before; nothing writes the source. */
const SOURCE = 2 * AREA_BYTES;
/** Where the peer writes, a slot after the other. */
const INBOX = 3 * AREA_BYTES;
/** What the peer's atomics are for. */
const WORDS = 4 * AREA_BYTES;
const WORD_COUNT = 8;
export const TOTAL_BYTES = WORDS + 8 * WORD_COUNT;
const MISTAKE_PERCENT = 0.4;
/** READs with the key of the window that was taken back last. */
const STALE_PERCENT = 3;

export interface Request {
  readonly cookie: number;
  readonly suppressed: boolean;
  /** What must be in local memory when it has succeeded. */
  readonly expected?: { readonly at: number; readonly data: Uint8Array };
  readonly slot: number;
  readonly mustFail?: boolean;
  /** Called when it has succeeded. */
  readonly done?: () => void;
}

/** What the peer's next receive must bring. */
export interface Message {
  readonly data: Uint8Array;
  /** Its bytes do not go to the receive. */
  readonly write: boolean;
  readonly immediate?: number;
  readonly invalidates?: number;
}

/** A window is bound, given to the peer, used, and taken back by the peer or by its owner. */
type WindowState = 'free' | 'binding' | 'open' | 'kept' | 'closing';

export class DatPosts {
  private rmr: Rmr | undefined;
  private state: WindowState = 'free';
  private key = 0;
  private stale: number[] = [];
  /** Of the peer's words, when all that has been posted is done. */
  private words: bigint[] | undefined;
  private writes = 0;

  constructor(
    private readonly own: DatEndpoint,
    private readonly pz: Pz,
    private readonly world: DatWorld,
  ) {}

  postOne(): void {
    const kind = this.world.random.below(12);
    if (kind < 4) this.send();
    else if (kind < 6) this.write();
    else if (kind < 8) this.read();
    else if (kind < 10) this.atomic();
    else this.window();
  }

  /** The peer has taken the window back. */
  onInvalidated(key: number): void {
    if (key !== this.key) return;
    this.stale.push(key);
    this.state = 'free';
    this.world.mark('windows invalidated by the peer');
  }

  reset(): void {
    this.free();
    this.state = 'free';
    this.stale = [];
    this.words = undefined;
  }

  free(): void {
    this.rmr?.free();
    this.rmr = undefined;
  }

  /** The window's key, while the peer may use it. */
  get openKey(): number | undefined {
    return this.state === 'open' ? this.key : undefined;
  }

  get staleKeys(): readonly number[] {
    return this.stale;
  }

  /** The peer has asked for its end: nobody uses it any more. */
  closing(): void {
    this.state = 'closing';
  }

  private send(): void {
    const { own, world } = this;
    const { random } = world;
    const { segment, data } = this.outgoing();
    const suppressed = random.percent(30);
    const flags = flagsOf(suppressed);
    const cookie = own.cookie(0);
    const key = own.peer?.posts.openKey;
    own.expect({ cookie, suppressed, slot: -1 });
    if (key !== undefined && random.percent(20)) {
      own.peer?.posts.closing();
      own.messages.push({ data, write: false, invalidates: key });
      const fence = CompletionFlags.BARRIER_FENCE;
      own.ep.postSendWithInvalidate(segment, cookie, key, flags | fence);
    } else if (random.percent(40)) {
      const immediate = random.u32();
      own.messages.push({ data, write: false, immediate });
      own.ep.postSendWithImmediate(segment, cookie, immediate, flags);
    } else {
      own.messages.push({ data, write: false });
      own.ep.postSend(segment, cookie, flags);
    }
  }

  /** Each into the next slot of the peer's inbox, compared unless another one follows there. */
  private write(): void {
    const { own, world } = this;
    const { random } = world;
    const { peer } = own;
    if (!peer?.established) return;
    const { segment, data } = this.outgoing();
    const turn = this.writes++;
    const at = INBOX + (turn % SLOTS) * SLOT_BYTES;
    const suppressed = random.percent(30);
    const { key, mustFail } = this.keyOf(peer, false);
    const remote = this.remote(peer, at, key);
    const cookie = own.cookie(0);
    const done = (): void => {
      if (this.writes - turn > SLOTS) return;
      const there = peer.lmr.bytes.subarray(at, at + data.length);
      if (Buffer.compare(there, data) !== 0) peer.violate(`WRITE ${cookie} of ${own.name} differs`);
    };
    const bad = mustFail && data.length > 0;
    own.expect({ cookie, suppressed, slot: -1, mustFail: bad, ...(!bad && { done }) });
    if (random.percent(30)) {
      const immediate = random.u32();
      own.messages.push({ data, write: true, immediate });
      const flags = flagsOf(suppressed);
      own.ep.postRdmaWriteWithImmediate(segment, cookie, remote, immediate, flags);
    } else own.ep.postRdmaWrite(segment, cookie, remote, flagsOf(suppressed));
  }

  private read(): void {
    const { own, world } = this;
    const { random } = world;
    const { peer } = own;
    const slot = own.slot(SLOTS);
    if (!peer?.established || slot < 0) return;
    const length = random.between(1, SLOT_BYTES);
    const from = SOURCE + random.below(AREA_BYTES - length);
    const { key, mustFail } = this.keyOf(peer, true);
    const data = peer.lmr.bytes.slice(from, from + length);
    const cookie = own.cookie(0);
    const at = slot * SLOT_BYTES;
    const suppressed = random.percent(30);
    own.expect({ cookie, suppressed, slot, expected: { at, data }, mustFail });
    const sink = own.lmr.segment(at, length);
    own.ep.postRdmaRead(sink, cookie, this.remote(peer, from, key), flagsOf(suppressed));
  }

  private atomic(): void {
    const { own, world } = this;
    const { random } = world;
    const { peer } = own;
    const slot = own.slot(SLOTS);
    if (!peer?.established || slot < 0) return;
    const view = new DataView(peer.lmr.bytes.buffer, peer.lmr.bytes.byteOffset + WORDS);
    this.words ??= Array.from({ length: WORD_COUNT }, (_, i) => view.getBigUint64(8 * i, true));
    const n = random.below(WORD_COUNT);
    const value = this.words[n] ?? 0n;
    const data = new Uint8Array(8);
    new DataView(data.buffer).setBigUint64(0, value, true);
    const at = slot * SLOT_BYTES;
    const cookie = own.cookie(0);
    own.expect({ cookie, suppressed: false, slot, expected: { at, data } });
    const sink = own.lmr.segment(at, 8);
    const remote = this.remote(peer, WORDS + 8 * n, peer.lmr.rmrContext ?? 0);
    const operand = BigInt(random.u32());
    if (random.percent(50)) {
      this.words[n] = BigInt.asUintN(64, value + operand);
      own.ep.postFetchAdd(sink, cookie, remote, operand);
    } else {
      const compare = random.percent(70) ? value : operand;
      if (compare === value) this.words[n] = operand;
      own.ep.postCompareSwap(sink, cookie, remote, compare, operand);
    }
    world.mark('atomics');
  }

  private window(): void {
    const { own, world } = this;
    if (own.ep.state !== 'CONNECTED') return;
    const cookie = own.cookie(0);
    const request = { cookie, suppressed: false, slot: -1 };
    if (this.state === 'kept' && this.rmr) {
      this.state = 'closing';
      const done = (): void => {
        this.stale.push(this.key);
        this.state = 'free';
        world.mark('windows unbound');
      };
      own.expect({ ...request, done });
      this.rmr.unbind(own.ep, { cookie });
    } else if (this.state === 'free') {
      this.state = 'binding';
      this.rmr ??= own.ia.createRmrForEp(this.pz);
      const given = world.random.percent(60);
      const done = (): void => {
        this.state = given ? 'open' : 'kept';
        world.mark('windows bound');
      };
      own.expect({ ...request, done });
      const source = own.lmr.segment(SOURCE, AREA_BYTES);
      const privileges = MemPrivileges.REMOTE_READ;
      this.key = this.rmr.bind(source, own.ep, { cookie, privileges }) ?? 0;
    }
  }

  private outgoing(): { segment: LmrSegment; data: Uint8Array } {
    const { random } = this.world;
    const length = random.percent(10) ? 0 : random.below(SLOT_BYTES);
    const at = SOURCE + random.below(AREA_BYTES - length);
    const { lmr } = this.own;
    return { segment: lmr.segment(at, length), data: lmr.bytes.slice(at, at + length) };
  }

  /** The region's key or the window's; now and then one that has been taken back, or none. */
  private keyOf(peer: DatEndpoint, readable: boolean): { key: number; mustFail: boolean } {
    const { random } = this.world;
    const { posts, lmr } = peer;
    if (random.percent(MISTAKE_PERCENT)) {
      return { key: random.pick([...posts.staleKeys, random.u32()]), mustFail: true };
    }
    const last = posts.staleKeys.at(-1);
    if (readable && last !== undefined && random.percent(STALE_PERCENT)) {
      return { key: last, mustFail: true };
    }
    const open = readable && random.percent(60) ? posts.openKey : undefined;
    return { key: open ?? lmr.rmrContext ?? 0, mustFail: false };
  }

  private remote(peer: DatEndpoint, at: number, rmrContext: number): RemoteSegment {
    return new RemoteSegment({ address: peer.lmr.address, rmrContext }).seek(at);
  }
}

function flagsOf(suppressed: boolean): number {
  return suppressed ? CompletionFlags.SUPPRESS : CompletionFlags.DEFAULT;
}
