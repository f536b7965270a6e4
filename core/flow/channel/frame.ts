/** Frames: the content of one SEND of a channel. A header, and a piece of a message or nothing. */
import { emit, layout, parse, uint, type Values } from './field-table.js';
import { breach } from './protocol-error.js';

export const FRAME_HEADER_BYTES = 8;

/** The class of posted receives that a frame goes into. */
export type CreditClass = 'message' | 'reserved';

/** The kinds of frames: number on the wire, credit class, and payload. */
export const FRAME_KINDS = {
  /** A message, or a piece of one. */
  MESSAGE: { number: 1, takes: 'message', carries: true },
  /** The message that has begun is cancelled: the peer drops what it has of it. */
  ABANDON: { number: 2, takes: 'message', carries: false },
  /** No more messages come from this side. */
  END: { number: 3, takes: 'message', carries: false },
  /** Only the common header: the number of receives that have been posted again. */
  CREDIT: { number: 4, takes: 'reserved', carries: false },
} as const satisfies Readonly<
  Record<string, { number: number; takes: CreditClass; carries: boolean }>
>;

export type FrameKind = keyof typeof FRAME_KINDS;

const KIND_NAMES = Object.keys(FRAME_KINDS) as FrameKind[];
const NAME_BY_NUMBER: readonly (FrameKind | undefined)[] = [undefined, ...KIND_NAMES];

const FRAME = layout('frame', FRAME_HEADER_BYTES, {
  kind: uint(0, 1, 1, KIND_NAMES.length),
  /** CREDIT frames received since the frame before: they give the reserved credit back. */
  updates: uint(1, 1, 0, 1),
  /** Receives for messages that were posted again since the frame before. */
  credits: uint(2, 2),
  /** MESSAGE: bytes of the message from this frame's on. Of other kinds 0. */
  remainingBytes: uint(4, 4),
});

export type FrameFields = Values<'updates' | 'credits' | 'remainingBytes'>;

export interface FrameHeader extends FrameFields {
  readonly kind: FrameKind;
}

/** @throws RangeError naming field, value and limit */
export function emitFrame(header: FrameHeader, data: Uint8Array): void {
  const { kind, updates, credits, remainingBytes } = header;
  emit(FRAME, { kind: FRAME_KINDS[kind].number, updates, credits, remainingBytes }, data);
}

/**
 * Checks a frame by itself. `Arrivals` and `Credits` check whether it may come now.
 * @throws ChannelProtocolError naming field, value and limit
 */
export function parseFrame(data: Uint8Array): FrameHeader {
  const { kind: number, updates, credits, remainingBytes } = parse(FRAME, data);
  const kind = NAME_BY_NUMBER[number]!;
  const payloadBytes = data.length - FRAME_HEADER_BYTES;
  checkSize(kind, payloadBytes, remainingBytes);
  return { kind, updates, credits, remainingBytes };
}

function checkSize(kind: FrameKind, payloadBytes: number, remainingBytes: number): void {
  if (!FRAME_KINDS[kind].carries) {
    if (remainingBytes !== 0) throw breach('frame.remainingBytes', remainingBytes, `0 in ${kind}`);
    if (payloadBytes !== 0) throw breach('the payload of a frame', payloadBytes, `0 in ${kind}`);
    return;
  }
  const least = Math.min(1, remainingBytes);
  if (payloadBytes >= least && payloadBytes <= remainingBytes) return;
  const limit = least === remainingBytes ? `${least}` : `${least} to ${remainingBytes}`;
  throw breach('the payload of a frame', payloadBytes, limit);
}
