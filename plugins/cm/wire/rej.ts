/** REJ, reject (IBTA 12.6.7). */
import { CM_MESSAGE_LENGTH } from './attribute-id.js';
import { padded, uint, wireCodec } from './field-table.js';
import type { Layout } from './field-table.js';

/** The message a REJ answers; `other` when it answers none, as after a timeout. */
export const MESSAGE_REJECTED = { req: 0, rep: 1, other: 2 } as const;

/** Bytes of additional reject information. */
export const REJECT_INFO_LENGTH = 72;

export interface CmRej {
  /** 0 when the rejecter has assigned none. */
  readonly localCommId: number;
  readonly remoteCommId: number;
  /** `MESSAGE_REJECTED`. */
  readonly messageRejected: number;
  /** Bytes of `additionalRejectInfo` that mean something, 0 to 72. */
  readonly rejectInfoLength: number;
  /** See reject-reason.ts. */
  readonly reason: number;
  /** 72 bytes. */
  readonly additionalRejectInfo: Uint8Array;
  /** 148 bytes. */
  readonly privateData: Uint8Array;
}

const layout: Layout<CmRej> = {
  localCommId: uint(0, 0, 32),
  remoteCommId: uint(4, 0, 32),
  messageRejected: uint(8, 0, 2),
  rejectInfoLength: uint(9, 0, 7, REJECT_INFO_LENGTH),
  reason: uint(10, 0, 16),
  additionalRejectInfo: padded(12, REJECT_INFO_LENGTH),
  privateData: padded(84, 148),
};

export const rejCodec = wireCodec<CmRej>('REJ', CM_MESSAGE_LENGTH, layout);
