/** DatError: what every call of the consumer API throws, or rejects with. */
import { type DatSubtype, type DatType, describeCode, returnCodeOf } from './codes.js';
import { hintFor } from './hints.js';

const BRAND = Symbol.for('dapl:DatError');

export interface DatErrorOptions {
  readonly subtype?: DatSubtype;
  /** The call, as the consumer wrote it: `ep.postSend`. */
  readonly operation: string;
  /** What is wrong; names the value and the limit. Default: the meaning of the code. */
  readonly message?: string;
  /** The offending value. */
  readonly value?: unknown;
  /** What to do about it. Default: the usual advice for the code. */
  readonly hint?: string;
  readonly cause?: unknown;
}

/**
 * An error of the DAT API. Decide by `code` (and `subtype`), never by the text. Copies of this
 * package recognize each other's errors: use `DatError.isDatError` rather than `instanceof`.
 */
export class DatError extends Error {
  override readonly name = 'DatError';
  /** DAT return type, such as `DAT_INVALID_STATE`. */
  readonly code: DatType;
  /** DAT subtype with its prefix, such as `DAT_INVALID_STATE_EP_UNCONNECTED`. */
  readonly subtype: DatSubtype | undefined;
  /** DAT's number, unsigned, class ERROR included (DAT facts 0.3). */
  readonly returnCode: number;
  readonly operation: string;
  readonly value: unknown;
  /** What to do about it. */
  readonly hint: string;

  constructor(code: DatType, options: DatErrorOptions) {
    const hint = options.hint ?? hintFor(code, options.subtype);
    super(
      textOf(code, hint, options),
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = code;
    this.subtype = options.subtype;
    this.returnCode = returnCodeOf(code, options.subtype);
    this.operation = options.operation;
    this.value = options.value;
    this.hint = hint;
    Object.defineProperty(this, BRAND, { value: true });
  }

  /** True for a DatError of any copy of this package. */
  static isDatError(this: void, value: unknown): value is DatError {
    return typeof value === 'object' && value !== null && BRAND in value;
  }
}

function textOf(code: DatType, hint: string, options: DatErrorOptions): string {
  const what = options.message ?? describeCode(code, options.subtype);
  return `${options.operation}: ${what} (${hint}) [${options.subtype ?? code}]`;
}
