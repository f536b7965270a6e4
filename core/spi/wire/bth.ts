/**
 * Base Transport Header, the first 12 bytes of every RoCEv2 UDP payload (IBTA 9.2).
 *
 * Every accessor takes a view and the offset of the header in it, and trusts that offset. Call
 * `checkPacket` once on every packet from the network, then read freely.
 */
import { DEFAULT_PKEY } from './ib.js';
import { lower24 } from './field.js';

export const BTH_LENGTH = 12;

const field = { opcode: 0, flags: 1, pkey: 2, destQpnWord: 4, psnWord: 8 } as const;

/** Bits that a sender chooses; combine with `|`, and with `bthPad`. */
export const BTH_FLAG = {
  /** SE: the responder raises a solicited completion event. */
  solicited: 0x80,
  /** M (MigReq): hardware sends 1 ("migrated"), rdma_rxe 0; receivers ignore it. */
  migrated: 0x40,
  /** AckReq, which is in another byte. */
  ackRequest: 0x100,
} as const;

/** Padding as a flag: makes a payload a multiple of 4 bytes. */
export function bthPad(payloadBytes: number): number {
  return (-payloadBytes & 3) << 4;
}

/** Destination of multicast datagrams. The GSI's number is `GSI_QPN` of the SPI. */
export const QPN_MULTICAST = 0xffffff;

/** The 8-bit opcode; the top 3 bits name the transport. */
export function bthOpcode(view: DataView, offset: number): number {
  return view.getUint8(offset + field.opcode);
}

export function bthSolicited(view: DataView, offset: number): boolean {
  return (view.getUint8(offset + field.flags) & BTH_FLAG.solicited) !== 0;
}

/** Bytes of padding after the payload, 0 to 3. */
export function bthPadCount(view: DataView, offset: number): number {
  return (view.getUint8(offset + field.flags) >>> 4) & 3;
}

/** TVer; anything but 0 is dropped. */
export function bthTransportVersion(view: DataView, offset: number): number {
  return view.getUint8(offset + field.flags) & 0x0f;
}

export function bthPkey(view: DataView, offset: number): number {
  return view.getUint16(offset + field.pkey);
}

/** Destination QPN, 24 bits. */
export const bthDestQpn = lower24(field.destQpnWord);

export function bthAckReq(view: DataView, offset: number): boolean {
  return view.getUint8(offset + field.psnWord) >= 0x80;
}

/** Packet sequence number, 24 bits. */
export const bthPsn = lower24(field.psnWord);

/**
 * Writes all 12 bytes; TVer, FECN, BECN and the reserved bits are zero, the P_Key is that of the
 * one partition of RoCE.
 * @param flags `BTH_FLAG` and `bthPad`
 * @param destQpn 24 bits, higher bits are cut off
 * @param psn 24 bits, higher bits are cut off
 */
export function writeBth(
  view: DataView,
  offset: number,
  opcode: number,
  flags: number,
  destQpn: number,
  psn: number,
): void {
  view.setUint32(offset, (opcode << 24) | ((flags & 0xf0) << 16) | DEFAULT_PKEY);
  view.setUint32(offset + field.destQpnWord, destQpn & 0xffffff);
  view.setUint32(offset + field.psnWord, ((flags & BTH_FLAG.ackRequest) << 23) | (psn & 0xffffff));
}
