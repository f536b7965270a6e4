/** The drop counter of each verdict of the wire's `checkPacket`. */
import type { DropReason } from '../common/counters.js';
import { PACKET_CHECK } from '../../../core/spi/wire/packet-layout.js';

export const DROP_OF_CHECK: Readonly<Record<number, DropReason>> = {
  [PACKET_CHECK.tooShort]: 'tooShort',
  [PACKET_CHECK.unknownOpcode]: 'unknownOpcode',
  [PACKET_CHECK.badTransportVersion]: 'badTransportVersion',
  [PACKET_CHECK.truncated]: 'truncated',
  [PACKET_CHECK.misaligned]: 'misaligned',
};
