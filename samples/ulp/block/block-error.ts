/** What a block backend throws, and nothing else; protocols have errors of their own for it. */

export type BlockFailure =
  /** Blocks that are not there; the command is at fault. */
  | 'out-of-range'
  /** The medium cannot be read at `lba`. */
  | 'medium-read'
  /** The medium cannot be written at `lba`, or what was written cannot be made durable. */
  | 'medium-write'
  /** Nothing is left to put the blocks in: ENOSPC, EDQUOT, EFBIG. */
  | 'no-space'
  /** A write to what may not be written. */
  | 'read-only'
  /** The backend was closed, or lost its power. */
  | 'gone';

export class BlockError extends Error {
  override readonly name = 'BlockError';

  /** @param lba the first block that is concerned, where it is known */
  constructor(
    readonly failure: BlockFailure,
    message: string,
    readonly lba?: bigint,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
