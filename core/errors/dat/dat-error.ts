/** DatError: the error of every call of the consumer API, thrown or rejected. */
import { oneLine, show } from '../../spi/checks/index.js';
import { type DatSubtype, type DatType, describeCode, returnCodeOf } from './codes.js';

const BRAND = Symbol.for('dapl:DatError');

export interface DatErrorOptions {
  readonly subtype?: DatSubtype;
  /** The call, as the consumer wrote it: `ep.postSend`. */
  readonly operation: string;
  /** The problem, with the value and the limit. Default: the meaning of the code. */
  readonly message?: string;
  /** The offending value. */
  readonly value?: unknown;
  /** Advice; left out where the message says enough. */
  readonly hint?: string | undefined;
  readonly cause?: unknown;
}

/**
 * An error of the DAT API. Test `code` (and `subtype`), never the text. Copies of this package
 * recognize each other's errors: use `DatError.isDatError` rather than `instanceof`.
 */
export class DatError extends Error {
  override readonly name = 'DatError';
  /** DAT return type, such as `DAT_INVALID_STATE`. */
  readonly code: DatType;
  /** DAT subtype with its prefix, such as `DAT_INVALID_STATE_EP_UNCONNECTED`. */
  readonly subtype: DatSubtype | undefined;
  /** DAT's number (dat_error.h), unsigned, class ERROR included. */
  readonly returnCode: number;
  readonly operation: string;
  readonly value: unknown;
  /** Advice, where the message does not say it. */
  readonly hint: string | undefined;

  constructor(code: DatType, options: DatErrorOptions) {
    super(
      textOf(code, options),
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = code;
    this.subtype = options.subtype;
    this.returnCode = returnCodeOf(code, options.subtype);
    this.operation = options.operation;
    this.value = options.value;
    this.hint = options.hint;
    Object.defineProperty(this, BRAND, { value: true });
  }

  /** For logs: the error's fields, without its stack and cause; the value as messages show it. */
  toJSON(): Readonly<Record<string, unknown>> {
    const { name, code, subtype, returnCode, operation, message, hint, value } = this;
    return { name, code, subtype, returnCode, operation, message, hint, value: show(value) };
  }

  /** True for a DatError of any copy of this package. */
  static isDatError(this: void, value: unknown): value is DatError {
    return typeof value === 'object' && value !== null && BRAND in value;
  }
}

function textOf(code: DatType, options: DatErrorOptions): string {
  const { operation, subtype, message = describeCode(code, subtype), hint } = options;
  const advice = hint === undefined ? '' : ` (${oneLine(hint)})`;
  return `${oneLine(operation)}: ${oneLine(message)}${advice} [${subtype ?? code}]`;
}
