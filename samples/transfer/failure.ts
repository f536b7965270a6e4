/** What ends a transfer before it is done: one clear sentence and an exit code. */
import { DatError } from 'dapl';

export class TransferFailure extends Error {
  override readonly name = 'TransferFailure';

  /** @param exitCode 1 for a failure, 130 for an interruption by SIGINT */
  constructor(
    message: string,
    readonly exitCode = 1,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}

/** The sentence for whatever was thrown. */
export function sentenceOf(error: unknown): string {
  if (error instanceof TransferFailure) return error.message;
  if (DatError.isDatError(error)) return error.message;
  if (error instanceof Error && 'code' in error)
    return fileSentence(error as NodeJS.ErrnoException);
  return error instanceof Error ? error.message : String(error);
}

function fileSentence(error: NodeJS.ErrnoException): string {
  const path = error.path ?? 'file';
  switch (error.code) {
    case 'ENOENT':
      return `There is no file "${path}".`;
    case 'EACCES':
      return `No permission for "${path}".`;
    case 'EISDIR':
      return `"${path}" is a directory, not a file.`;
    case 'ENOSPC':
      return `No space left for "${path}".`;
    default:
      return error.message;
  }
}
