import { oneLine } from '../checks/index.js';

/**
 * The error of providers and modules. `code` is the POSIX name that the verbs call would give; core
 * turns it into a DatError with the operation and the consumer's value.
 */
export type SpiErrorCode =
  | 'EINVAL'
  | 'ENOMEM'
  | 'EBUSY'
  | 'EPERM'
  | 'EACCES'
  | 'ENODEV'
  | 'EADDRINUSE'
  | 'EADDRNOTAVAIL'
  | 'ENETUNREACH'
  | 'EHOSTUNREACH'
  | 'ECONNREFUSED'
  | 'ETIMEDOUT'
  | 'EOVERFLOW'
  | 'EALREADY'
  | 'EAGAIN'
  | 'EINTR'
  | 'EAFNOSUPPORT'
  | 'EISCONN'
  | 'ENOTCONN'
  | 'EOPNOTSUPP'
  | 'EIO';

export class SpiError extends Error {
  override readonly name = 'SpiError';
  /** Advice, where the message does not give it. The DatError has it too. */
  readonly hint: string | undefined;

  /** @param message names the value and the limit, or the attribute and the transition */
  constructor(
    readonly code: SpiErrorCode,
    message: string,
    { hint, ...options }: { readonly cause?: unknown; readonly hint?: string } = {},
  ) {
    super(oneLine(message), options);
    this.hint = hint;
  }
}
