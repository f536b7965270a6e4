/** The error for bytes that a peer must not send. */

/** The kind of rule that the peer has broken; a session answers each as RFC 7143 says. */
export type WireFault =
  /** A PDU that is cut off, or whose lengths contradict each other: framing is lost. */
  | 'length'
  /** An opcode that the sender's side does not have. */
  | 'opcode'
  /** A field with a value that RFC 7143 or RFC 7145 does not allow. */
  | 'field'
  /** Text that is no list of key=value pairs, or a value that its key cannot have. */
  | 'text';

/** Bytes that are not what RFC 7143, RFC 7145, SPC or SBC say. */
export class WireError extends Error {
  override readonly name = 'WireError';

  constructor(
    readonly fault: WireFault,
    /** The field or key. */
    readonly field: string,
    /** The actual value. */
    readonly value: number | string,
    /** Allowed values. */
    readonly limit: string,
  ) {
    super(`${field} is ${shown(value)}, must be ${limit}`);
  }
}

/** The longest part of a peer's text that is repeated in a message. */
const SHOWN_CHARACTERS = 64;

function shown(value: number | string): string {
  if (typeof value === 'number') return String(value);
  const text = value.length > SHOWN_CHARACTERS ? `${value.slice(0, SHOWN_CHARACTERS)}...` : value;
  return JSON.stringify(text);
}
