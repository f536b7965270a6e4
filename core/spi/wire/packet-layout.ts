/**
 * The layout of a packet, by opcode, as flat arrays for the hot path; and the one check that
 * untrusted bytes pass before any accessor may read them.
 *
 * Header offsets count from the start of the BTH. 0 means that the opcode has no such header.
 * Lengths are those of a received packet as a PacketPort hands it over: from the BTH to the end of
 * the padding, the ICRC cut off.
 */
import { BTH_LENGTH, bthOpcode, bthPadCount, bthTransportVersion } from './bth.js';
import { HEADER_LENGTH, type HeaderName, type OpcodeInfo, OPCODES, PAYLOAD } from './opcode.js';

/** The ICRC at the end of every packet, in bytes. */
export const ICRC_LENGTH = 4;

function byOpcode(value: (info: OpcodeInfo) => number): Uint8Array {
  return Uint8Array.from(OPCODES, value);
}

function offsetOf(name: HeaderName): Uint8Array {
  return byOpcode((info) => {
    const index = info.headers.indexOf(name);
    if (index < 0) return 0;
    const before = info.headers.slice(0, index);
    return before.reduce((sum, header) => sum + HEADER_LENGTH[header], BTH_LENGTH);
  });
}

/** BTH and extension headers in bytes: where the payload starts. 0 if the opcode is dropped. */
export const HEADER_LENGTH_OF = byOpcode((info) => info.headerLength);
/** `OPCODE_BIT` flags. */
export const BITS_OF = byOpcode((info) => info.bits);
/** `OPERATION` code. */
export const OPERATION_OF = byOpcode((info) => info.operation);
/** `PAYLOAD` rule. */
export const PAYLOAD_OF = byOpcode((info) => info.payload);

export const DETH_OFFSET_OF = offsetOf('DETH');
export const XRCETH_OFFSET_OF = offsetOf('XRCETH');
export const RETH_OFFSET_OF = offsetOf('RETH');
export const ATOMIC_ETH_OFFSET_OF = offsetOf('AtomicETH');
export const AETH_OFFSET_OF = offsetOf('AETH');
export const ATOMIC_ACK_ETH_OFFSET_OF = offsetOf('AtomicAckETH');
export const IMMDT_OFFSET_OF = offsetOf('ImmDt');
export const IETH_OFFSET_OF = offsetOf('IETH');

/** Verdicts of `checkPacket`; everything but `ok` is a silent, counted drop. */
export const PACKET_CHECK = {
  ok: 0,
  /** Shorter than a BTH. */
  tooShort: 1,
  unknownOpcode: 2,
  /** TVer is not 0. */
  badTransportVersion: 3,
  /** Shorter than the opcode's headers and the padding. */
  truncated: 4,
  /** Payload and padding are not a multiple of 4 bytes (IBTA 9.2.3). */
  misaligned: 5,
} as const;

export type PacketCheck = (typeof PACKET_CHECK)[keyof typeof PACKET_CHECK];

/**
 * Checks the form of a packet. After `ok`, all header accessors of its opcode are in bounds and
 * `payloadLength` is 0 or more.
 * @param offset where the BTH starts; 0 to `view.byteLength`
 * @param lengthBytes from the BTH to the end of the padding, without ICRC; within the view
 */
export function checkPacket(view: DataView, offset: number, lengthBytes: number): PacketCheck {
  if (lengthBytes < BTH_LENGTH) return PACKET_CHECK.tooShort;
  const headerLength = HEADER_LENGTH_OF[bthOpcode(view, offset)] as number;
  if (headerLength === 0) return PACKET_CHECK.unknownOpcode;
  if (bthTransportVersion(view, offset) !== 0) return PACKET_CHECK.badTransportVersion;
  const rest = lengthBytes - headerLength;
  if (rest < bthPadCount(view, offset)) return PACKET_CHECK.truncated;
  if ((rest & 3) !== 0) return PACKET_CHECK.misaligned;
  return PACKET_CHECK.ok;
}

/** Payload bytes of a packet that passed `checkPacket` with the same length, without padding. */
export function payloadLength(view: DataView, offset: number, lengthBytes: number): number {
  const headerLength = HEADER_LENGTH_OF[bthOpcode(view, offset)] as number;
  return lengthBytes - headerLength - bthPadCount(view, offset);
}

/** True if an opcode may carry a payload of this length on a path with this MTU, in bytes. */
export function payloadLengthAllowed(
  opcode: number,
  payloadBytes: number,
  mtuBytes: number,
): boolean {
  switch (PAYLOAD_OF[opcode]) {
    case PAYLOAD.none:
      return payloadBytes === 0;
    case PAYLOAD.fullMtu:
      return payloadBytes === mtuBytes;
    case PAYLOAD.upToMtu:
      return payloadBytes <= mtuBytes;
    case PAYLOAD.nonEmpty:
      return payloadBytes > 0 && payloadBytes <= mtuBytes;
    case PAYLOAD.eightBytes:
      return payloadBytes === 8;
    case PAYLOAD.sixteenBytes:
      return payloadBytes === 16;
    default:
      return false;
  }
}
