/** A violation of the protocol by the peer: it ends this connection, and nothing else. */

/** Names the received value and the allowed values. */
export class SdpProtocolError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SdpProtocolError';
  }
}

/** @throws SdpProtocolError unless `holds` */
export function expect(holds: boolean, message: () => string): asserts holds {
  if (!holds) throw new SdpProtocolError(message());
}
