/** A violation of the protocol by the peer: the value that it sent, and the allowed values. */
export class RsocketProtocolError extends Error {
  override readonly name = 'RsocketProtocolError';

  constructor(
    /** The field, or the request of a message, that is wrong. */
    readonly field: string,
    readonly value: number | string,
    /** Allowed values. */
    readonly limit: string,
  ) {
    super(`the peer violates the protocol: ${field} is ${value}, must be ${limit}`);
  }
}
