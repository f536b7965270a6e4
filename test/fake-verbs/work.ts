/** Ring entries from and to plain objects: for tests, where clarity counts and speed does not. */
import { WrFlags } from '../../core/spi/wire/ib.js';
import { CQE, type Ring, RQE, SGE, SQE } from '../../core/spi/layout/ring.js';
import type { CompletionQueue, QueuePair } from '../../core/spi/device/device.js';

export interface Segment {
  readonly address: bigint;
  readonly length: number;
  readonly lkey: number;
}

export interface Send {
  readonly opcode: number;
  readonly flags?: number;
  readonly cookie?: bigint;
  readonly segments?: readonly Segment[];
  readonly inline?: Uint8Array;
  readonly remote?: { readonly address: bigint; readonly rkey: number };
  readonly extra?: number;
  readonly compareAdd?: bigint;
  readonly swap?: bigint;
  /** Of a datagram. */
  readonly to?: { readonly ah: number; readonly qpn: number; readonly qkey: number };
  readonly bind?: {
    readonly address: bigint;
    readonly length: bigint;
    readonly window: number;
    readonly regionLkey: number;
    readonly access: number;
    readonly rkey: number;
  };
}

export interface Completion {
  readonly status: number;
  readonly opcode: number;
  readonly flags: number;
  readonly qpn: number;
  readonly cookie: bigint;
  readonly byteLength: number;
  readonly sourceQpn: number;
  readonly extra: number;
  readonly vendorError: number;
  readonly index: number;
  readonly srqn: number;
  readonly context: number;
}

function set64(words: Uint32Array, at: number, value: bigint): void {
  words[at] = Number(value & 0xffffffffn);
  words[at + 1] = Number(value >> 32n);
}

function writeSegments(words: Uint32Array, at: number, segments: readonly Segment[]): void {
  for (const [i, segment] of segments.entries()) {
    const word = at + i * SGE.WORDS;
    set64(words, word + SGE.ADDRESS_LO, segment.address);
    words[word + SGE.LENGTH] = segment.length;
    words[word + SGE.LKEY] = segment.lkey;
  }
}

/** Writes one send entry and advances `producer`; ringing the doorbell is the caller's. */
export function addSend(ring: Ring, send: Send): number {
  const index = ring.producer;
  const at = ring.wordOf(index);
  const { words } = ring;
  const segments = send.segments ?? [];
  const flags = (send.flags ?? WrFlags.SIGNALED) | (send.inline ? WrFlags.INLINE : 0);
  words.fill(0, at, at + ring.strideWords);
  words[at + SQE.CONTROL] = send.opcode | (flags << 8) | (segments.length << 16);
  set64(words, at + SQE.COOKIE_LO, send.cookie ?? BigInt(index));
  if (send.remote) {
    set64(words, at + SQE.REMOTE_ADDRESS_LO, send.remote.address);
    words[at + SQE.RKEY] = send.remote.rkey;
  }
  words[at + SQE.IMMEDIATE_OR_INVALIDATE] = send.extra ?? 0;
  set64(words, at + SQE.COMPARE_ADD_LO, send.compareAdd ?? 0n);
  set64(words, at + SQE.SWAP_LO, send.swap ?? 0n);
  if (send.bind) {
    set64(words, at + SQE.REMOTE_ADDRESS_LO, send.bind.address);
    set64(words, at + SQE.BIND_LENGTH_LO, send.bind.length);
    words[at + SQE.BIND_WINDOW] = send.bind.window;
    words[at + SQE.BIND_REGION_LKEY] = send.bind.regionLkey;
    words[at + SQE.BIND_ACCESS] = send.bind.access;
    words[at + SQE.BIND_RKEY] = send.bind.rkey;
  }
  if (send.to) {
    words[at + SQE.ADDRESS_HANDLE] = send.to.ah;
    words[at + SQE.REMOTE_QPN] = send.to.qpn;
    words[at + SQE.REMOTE_QKEY] = send.to.qkey;
  }
  if (send.inline) {
    words[at + SQE.INLINE_LENGTH] = send.inline.length;
    new Uint8Array(ring.buffer, ring.byteOf(index) + SQE.SEGMENTS * 4).set(send.inline);
  } else writeSegments(words, at + SQE.SEGMENTS, segments);
  ring.producer = index + 1;
  return index;
}

/** Writes one burst and rings the doorbell once. */
export function postSends(qp: QueuePair, ...sends: readonly Send[]): number[] {
  const indices = sends.map((send) => addSend(qp.sendRing, send));
  qp.ringSendDoorbell();
  return indices;
}

/** Writes a receive entry at a slot or index of a ring; `producer` stays as it is. */
export function writeReceive(
  ring: Ring,
  index: number,
  segments: readonly Segment[],
  cookie = BigInt(index),
): void {
  const at = ring.wordOf(index);
  ring.words.fill(0, at, at + ring.strideWords);
  ring.words[at + RQE.NUM_SGE] = segments.length;
  set64(ring.words, at + RQE.COOKIE_LO, cookie);
  writeSegments(ring.words, at + RQE.SEGMENTS, segments);
}

export function postReceives(qp: QueuePair, ...receives: readonly (readonly Segment[])[]): void {
  const ring = qp.receiveRing;
  if (ring === undefined) throw new TypeError('this queue pair has no receive ring');
  for (const segments of receives) {
    writeReceive(ring, ring.producer, segments);
    ring.producer += 1;
  }
  qp.ringReceiveDoorbell();
}

/** Reads what is in the ring, without asking the provider for more. */
export function read(ring: Ring): Completion[] {
  const completions: Completion[] = [];
  for (; ring.length > 0; ring.consumer += 1) {
    const at = ring.wordOf(ring.consumer);
    const word = (w: number): number => ring.words[at + w] ?? 0;
    const control = word(CQE.CONTROL);
    completions.push({
      status: control & 0xff,
      opcode: (control >>> 8) & 0xff,
      flags: (control >>> 16) & 0xff,
      qpn: word(CQE.QPN),
      cookie: (BigInt(word(CQE.COOKIE_HI)) << 32n) | BigInt(word(CQE.COOKIE_LO)),
      byteLength: word(CQE.BYTE_LENGTH),
      sourceQpn: word(CQE.SOURCE_QPN),
      extra: word(CQE.IMMEDIATE_OR_INVALIDATE),
      vendorError: word(CQE.VENDOR_ERROR),
      index: word(CQE.WQE_INDEX),
      srqn: word(CQE.SRQN),
      context: word(CQE.QP_CONTEXT),
    });
  }
  return completions;
}

/** Polls and reads until nothing is left. */
export function drain(cq: CompletionQueue): Completion[] {
  const completions: Completion[] = [];
  while (cq.poll() > 0) completions.push(...read(cq.ring));
  return completions;
}
