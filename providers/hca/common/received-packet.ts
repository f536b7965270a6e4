/** The current packet: one object, overwritten for each, so that dispatch allocates nothing. */
import type { Gid } from '../../../core/spi/index.js';

const NO_GID: Gid = new Uint8Array(16);

export class ReceivedPacket {
  view: DataView = new DataView(new ArrayBuffer(0));
  /** Offset in `view` of the BTH. */
  offset = 0;
  opcode = 0;
  psn = 0;
  /** Offset in `view`, which is that in `rxArena`. */
  payloadOffset = 0;
  payloadLength = 0;
  localGidIndex = 0;
  /** Its destination: one of the port's addresses, or a group. */
  destination: Gid = NO_GID;
  /** Source GID, four big-endian words. */
  source0 = 0;
  source1 = 0;
  source2 = 0;
  source3 = 0;
  isIpv6 = false;
  /** UDP. */
  sourcePort = 0;
}
