/** The error of a transfer that failed: one clear sentence and an exit code. */
import { DatError } from 'dapl';
import { FlowError } from 'dapl/flow';

import { sentenceOf } from '../program.js';

export interface FailureDetails {
  /** 1 by default; 130 for an interruption by SIGINT. */
  readonly exitCode?: number;
  /** True if this is only the consequence of a failure on the other side. */
  readonly byPeer?: boolean;
  /** The progress so far: "after 12.0 of 256.0 MiB at 80 MiB/s". */
  readonly figures?: string | undefined;
  /** Advice for the next run: "the same command resumes it". */
  readonly hint?: string;
  readonly cause?: unknown;
}

export class TransferFailure extends Error {
  override readonly name = 'TransferFailure';
  readonly exitCode: number;
  readonly byPeer: boolean;
  readonly figures: string | undefined;

  /** @param what happened: the beginning of a sentence */
  constructor(
    readonly what: string,
    details: FailureDetails = {},
  ) {
    const { exitCode = 1, byPeer = false, figures, hint, cause } = details;
    super(
      `${what}${figures ? `, ${figures}` : ''}${figures && hint ? `; ${hint}` : ''}.`,
      cause === undefined ? undefined : { cause },
    );
    this.exitCode = exitCode;
    this.byPeer = byPeer;
    this.figures = figures;
  }

  /** The same failure, with the progress so far. */
  after(figures: string | undefined, hint: string): TransferFailure {
    const { what, exitCode, byPeer } = this;
    return new TransferFailure(what, { exitCode, byPeer, figures, hint, cause: this });
  }
}

/** Converts any error to a failure with a clear sentence. */
export function failureOf(error: unknown): TransferFailure {
  if (error instanceof TransferFailure) return error;
  return new TransferFailure(whatOf(error), { cause: error });
}

function whatOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (DatError.isDatError(error) || FlowError.isFlowError(error)) {
    const text = sentenceOf(error);
    return text.slice(0, 1).toUpperCase() + text.slice(1);
  }
  return 'code' in error ? fileProblem(error as NodeJS.ErrnoException) : error.message;
}

function fileProblem(error: NodeJS.ErrnoException): string {
  const path = JSON.stringify(error.path ?? 'the file');
  switch (error.code) {
    case 'ENOENT':
      return `There is no ${path}`;
    case 'EACCES':
    case 'EPERM':
      return `No permission for ${path}`;
    case 'EISDIR':
      return `${path} is a directory, not a file`;
    case 'ENOTDIR':
      return `A part of ${path} is not a directory`;
    case 'ENOSPC':
    case 'EDQUOT':
      return `No space left for ${path}`;
    case 'EROFS':
      return `${path} is on a read-only file system`;
    case 'ENAMETOOLONG':
      return `The file system takes no name as long as ${path}`;
    default:
      return error.message;
  }
}
