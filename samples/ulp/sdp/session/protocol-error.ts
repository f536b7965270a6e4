/** The peer does not keep to the protocol: it ends this connection, and nothing else. */

/** Names what came, and what may come. */
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
