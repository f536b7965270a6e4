/** REJ, reject (IBTA 12.6.7). */
import { cmCodec } from './cm-codec.js';
import { type MessageOf, padded, uint } from './field-table.js';

/** The message a REJ answers; `other` when it answers none, as after a timeout. */
export const MESSAGE_REJECTED = { req: 0, rep: 1, other: 2 } as const;

/** Bytes of additional reject information. */
export const REJECT_INFO_LENGTH = 72;

export const rejCodec = cmCodec('REJ', {
  /** 0 when the rejecter has assigned none. */
  localCommId: uint(0, 0, 32),
  remoteCommId: uint(4, 0, 32),
  /** `MESSAGE_REJECTED`. */
  messageRejected: uint(8, 0, 2),
  /** Bytes of `additionalRejectInfo` that mean something, 0 to 72. */
  rejectInfoLength: uint(9, 0, 7, REJECT_INFO_LENGTH),
  /** See reject-reason.ts. */
  reason: uint(10, 0, 16),
  /** 72 bytes. */
  additionalRejectInfo: padded(12, REJECT_INFO_LENGTH),
  /** 148 bytes. */
  privateData: padded(84, 148),
});
export type CmRej = MessageOf<typeof rejCodec>;
