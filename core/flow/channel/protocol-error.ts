/** Errors of a peer that breaks the channel's protocol. */
import { mustBe } from '../../spi/checks/index.js';

/** The peer sent what the channel's protocol does not allow: docs/channel.md. */
export class ChannelProtocolError extends Error {
  override readonly name = 'ChannelProtocolError';

  /**
   * @param field of the frame or of the announcement
   * @param value that it has
   * @param limit what it must be
   */
  constructor(
    readonly field: string,
    readonly value: unknown,
    readonly limit: string,
  ) {
    super(mustBe(field, value, limit));
  }
}

/** For checks: the error of a value from the peer. */
export function breach(field: string, value: unknown, limit: string): ChannelProtocolError {
  return new ChannelProtocolError(field, value, limit);
}
