/** The way to the peer of a connection, and the test that a packet came that way. */
import { SpiError, gidWords } from '../../core/spi/index.js';
import type { AddressVector, GidWords } from '../../core/spi/index.js';
import type { Hca } from './hca.js';
import type { ReceivedPacket } from './received-packet.js';

const NO_GID: GidWords = [0, 0, 0, 0];

export class PeerPath {
  /** The port's number; -1 for none. */
  number = -1;
  /** The peer: what comes from elsewhere is not of this connection. */
  private peer: GidWords = NO_GID;
  private localGidIndex = 0;

  constructor(private readonly hca: Hca) {}

  /** @throws SpiError('ENETUNREACH'), and the path is what it was */
  set(vector: AddressVector): void {
    let number: number;
    try {
      number = this.hca.port.addPath(vector.gid, vector.localGidIndex);
    } catch (cause) {
      throw new SpiError('ENETUNREACH', 'addressVector.gid: no local address reaches it', {
        cause,
      });
    }
    this.clear();
    this.number = number;
    this.peer = gidWords(vector.gid);
    this.localGidIndex = vector.localGidIndex;
  }

  clear(): void {
    if (this.number < 0) return;
    this.hca.releasePath(this.number);
    this.number = -1;
    this.peer = NO_GID;
  }

  leadsTo(rx: ReceivedPacket): boolean {
    const { peer } = this;
    return (
      rx.source3 === peer[3] &&
      rx.source2 === peer[2] &&
      rx.source1 === peer[1] &&
      rx.source0 === peer[0] &&
      rx.localGidIndex === this.localGidIndex
    );
  }
}
