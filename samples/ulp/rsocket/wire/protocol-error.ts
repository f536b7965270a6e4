/** The peer does not keep to the protocol: what it sent, and what it may send. */
export class RsocketProtocolError extends Error {
  override readonly name = 'RsocketProtocolError';

  constructor(
    /** The field, or the request of a message, that is wrong. */
    readonly field: string,
    readonly value: number | string,
    /** Allowed values. */
    readonly limit: string,
  ) {
    super(`the peer does not keep to rsockets: ${field} is ${value}, may be ${limit}`);
  }
}
