/** The error of block backends, which throw nothing else; protocols map it to their own. */

export type BlockFailure =
  /** Blocks that do not exist; the command is at fault. */
  | 'out-of-range'
  /** The medium cannot be read at `lba`. */
  | 'medium-read'
  /** The medium cannot be written at `lba`, or written data cannot be made durable. */
  | 'medium-write'
  /** There is no space left for the blocks: ENOSPC, EDQUOT, EFBIG. */
  | 'no-space'
  /** A write to a read-only backend. */
  | 'read-only'
  /** The backend was closed, or lost its power. */
  | 'gone';

export class BlockError extends Error {
  override readonly name = 'BlockError';

  /** @param lba the first block of the failure, if known */
  constructor(
    readonly failure: BlockFailure,
    message: string,
    readonly lba?: bigint,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
