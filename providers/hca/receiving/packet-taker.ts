/** A queue pair, as one that packets come to. */
import type { QpState } from '../../../core/spi/index.js';
import type { ReceivedPacket } from '../common/received-packet.js';

export interface PacketTaker {
  readonly state: QpState;
  /** BTH transport code (top 3 opcode bits) of its packets. */
  readonly transport: number;
  /** A packet of the right transport, in a state that takes it. */
  receive(rx: ReceivedPacket): void;
}
