/** Work requests as the simulator remembers them, and how they are written into rings. */
import {
  type QueuePair,
  type Ring,
  RQE,
  SGE,
  type SharedReceiveQueue,
  SQE,
  WrFlags,
  type WrOpcode,
} from '../../core/spi/index.js';
import type { Effect } from './memory-model.js';

export interface Segment {
  /** In the endpoint's memory. */
  readonly offset: number;
  readonly length: number;
  readonly lkey: number;
}

/** What a request is made to run into. */
export type Plan = 'ok' | 'bad-rkey' | 'out-of-bounds' | 'bad-lkey' | 'bad-bind' | 'bad-srq';

/** Operands of BIND_MW. */
export interface Bind {
  readonly window: number;
  readonly rkey: number;
  readonly lkey: number;
  readonly address: bigint;
  readonly length: number;
  readonly access: number;
  /** The peer is to have the key. */
  readonly given: boolean;
}

export interface SendRequest {
  readonly index: number;
  readonly cookie: number;
  readonly opcode: WrOpcode;
  readonly flags: number;
  readonly length: number;
  readonly segments: readonly Segment[];
  readonly remoteAddress: bigint;
  readonly rkey: number;
  readonly immediate: number;
  readonly compareAdd: bigint;
  readonly swap: bigint;
  readonly plan: Plan;
  /** What SEND and WRITE carry. */
  readonly payload: Uint8Array;
  /** What it does to target memory at the peer, and to landing memory here. */
  readonly remote: readonly Effect[];
  readonly local: readonly Effect[];
  /** Target slots it reads, to be unlocked when it ends; -1 for none. */
  readonly readsSlot: number;
  readonly landingSlot: number;
  readonly bind?: Bind;
  /** Of an XRC initiator: the queue that it is for. */
  readonly xrcSrqn?: number;
}

export interface ReceiveRequest {
  readonly index: number;
  readonly cookie: number;
  readonly slot: number;
  readonly segments: readonly Segment[];
  readonly capacity: number;
}

/** Adds a send request to the ring, without ringing. */
export function writeSend(qp: QueuePair, base: bigint, r: SendRequest): void {
  const ring = qp.sendRing;
  const { words } = ring;
  const at = ring.wordOf(r.index);
  const inline = (r.flags & WrFlags.INLINE) !== 0;
  words.fill(0xdeadbeef, at, at + ring.strideWords);
  words[at + SQE.CONTROL] = r.opcode | (r.flags << 8) | ((inline ? 0 : r.segments.length) << 16);
  words[at + SQE.INLINE_LENGTH] = inline ? r.length : 0;
  words[at + SQE.COOKIE_LO] = r.cookie;
  words[at + SQE.COOKIE_HI] = 0;
  putWide(words, at + SQE.REMOTE_ADDRESS_LO, r.remoteAddress);
  words[at + SQE.RKEY] = r.rkey;
  words[at + SQE.IMMEDIATE_OR_INVALIDATE] = r.immediate;
  putWide(words, at + SQE.COMPARE_ADD_LO, r.compareAdd);
  putWide(words, at + SQE.SWAP_LO, r.swap);
  if (r.xrcSrqn !== undefined) words[at + SQE.XRC_SRQN] = r.xrcSrqn;
  if (r.bind) putBind(words, at, r.bind);
  if (inline) {
    new Uint8Array(ring.buffer).set(r.payload, ring.byteOf(r.index) + SQE.SEGMENTS * 4);
  } else putSegments(words, at + SQE.SEGMENTS, base, r.segments);
  ring.producer = r.index + 1;
}

function putBind(words: Uint32Array, at: number, bind: Bind): void {
  putWide(words, at + SQE.REMOTE_ADDRESS_LO, bind.address);
  putWide(words, at + SQE.BIND_LENGTH_LO, BigInt(bind.length));
  words[at + SQE.BIND_WINDOW] = bind.window;
  words[at + SQE.BIND_REGION_LKEY] = bind.lkey;
  words[at + SQE.BIND_ACCESS] = bind.access;
  words[at + SQE.BIND_RKEY] = bind.rkey;
}

export function writeReceive(ring: Ring, base: bigint, r: ReceiveRequest): void {
  putReceive(ring, base, r);
  ring.producer = r.index + 1;
}

/** Writes the slot and submits it, without ringing. */
export function writeShared(srq: SharedReceiveQueue, base: bigint, r: ReceiveRequest): void {
  const { slots, submissions } = srq.ring;
  putReceive(slots, base, r);
  submissions.words[submissions.wordOf(submissions.producer)] = r.slot;
  submissions.producer += 1;
}

function putReceive(ring: Ring, base: bigint, r: ReceiveRequest): void {
  const at = ring.wordOf(r.index);
  ring.words[at + RQE.NUM_SGE] = r.segments.length;
  ring.words[at + RQE.FLAGS] = 0;
  ring.words[at + RQE.COOKIE_LO] = r.cookie;
  ring.words[at + RQE.COOKIE_HI] = 0;
  putSegments(ring.words, at + RQE.SEGMENTS, base, r.segments);
}

function putSegments(words: Uint32Array, at: number, base: bigint, list: readonly Segment[]): void {
  for (const [i, { offset, length, lkey }] of list.entries()) {
    const word = at + i * SGE.WORDS;
    putWide(words, word + SGE.ADDRESS_LO, base + BigInt(offset));
    words[word + SGE.LENGTH] = length;
    words[word + SGE.LKEY] = lkey;
  }
}

function putWide(words: Uint32Array, at: number, value: bigint): void {
  words[at] = Number(value & 0xffffffffn);
  words[at + 1] = Number((value >> 32n) & 0xffffffffn);
}

/** The bytes of a list of segments, one after the other. */
export function gather(bytes: Uint8Array, segments: readonly Segment[]): Uint8Array {
  const parts = segments.map(({ offset, length }) => bytes.subarray(offset, offset + length));
  return Uint8Array.from(Buffer.concat(parts));
}

/** What a payload does to the memory behind a list of segments. */
export function scatter(payload: Uint8Array, segments: readonly Segment[]): Effect[] {
  const effects: Effect[] = [];
  let done = 0;
  for (const { offset, length } of segments) {
    const data = payload.subarray(done, done + length);
    if (data.length > 0) effects.push({ offset, data });
    done += data.length;
  }
  return effects;
}
