/** The peer does not keep to the protocol: what it sent, and what it may send. */
export class RsocketProtocolError extends Error {
  override readonly name = 'RsocketProtocolError';

  constructor(
    /** What is wrong: a field, or what a message asks for. */
    readonly field: string,
    readonly value: number | string,
    /** What it may be. */
    readonly limit: string,
  ) {
    super(`the peer does not keep to rsockets: ${field} is ${value}, may be ${limit}`);
  }
}
