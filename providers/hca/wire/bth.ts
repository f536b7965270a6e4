/**
 * Base Transport Header, the first 12 bytes of every RoCEv2 UDP payload (IBTA 9.2).
 *
 * Every accessor takes a view and the offset of the header in it, and trusts that offset: call
 * `checkPacket` once on anything that came from the network, then read freely.
 */

export const BTH_LENGTH = 12;

const field = {
  opcode: 0,
  flags: 1,
  pkey: 2,
  congestion: 4,
  destQpnWord: 4,
  psnWord: 8,
} as const;

/** The two flag bits of byte 1 a sender chooses; combine with `|`. */
export const BTH_FLAG = {
  /** SE: the responder raises a solicited completion event. */
  solicited: 0x80,
  /** M (MigReq): hardware sends 1 ("migrated"), rdma_rxe 0; receivers ignore it. */
  migrated: 0x40,
} as const;

/** FECN and BECN in byte 4. Masked in the ICRC, hence settable by the network. */
export const BTH_CONGESTION = { fecn: 0x80, becn: 0x40 } as const;

/** Destination of multicast datagrams. The GSI's number is `GSI_QPN` of the SPI. */
export const QPN_MULTICAST = 0xffffff;

/** The 8-bit opcode; the top 3 bits name the transport. */
export function bthOpcode(view: DataView, offset: number): number {
  return view.getUint8(offset + field.opcode);
}

export function bthSolicited(view: DataView, offset: number): boolean {
  return (view.getUint8(offset + field.flags) & BTH_FLAG.solicited) !== 0;
}

export function bthMigrated(view: DataView, offset: number): boolean {
  return (view.getUint8(offset + field.flags) & BTH_FLAG.migrated) !== 0;
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

export function bthFecn(view: DataView, offset: number): boolean {
  return (view.getUint8(offset + field.congestion) & BTH_CONGESTION.fecn) !== 0;
}

export function bthBecn(view: DataView, offset: number): boolean {
  return (view.getUint8(offset + field.congestion) & BTH_CONGESTION.becn) !== 0;
}

/** Destination QPN, 24 bits. */
export function bthDestQpn(view: DataView, offset: number): number {
  return view.getUint32(offset + field.destQpnWord) & 0xffffff;
}

export function bthAckReq(view: DataView, offset: number): boolean {
  return view.getUint8(offset + field.psnWord) >= 0x80;
}

/** Packet sequence number, 24 bits. */
export function bthPsn(view: DataView, offset: number): number {
  return view.getUint32(offset + field.psnWord) & 0xffffff;
}

/**
 * Writes all 12 bytes; TVer, FECN, BECN and the reserved bits are zero.
 * @param flags bits of `BTH_FLAG`
 * @param padCount 0 to 3
 * @param destQpn 24 bits, higher bits are cut off
 * @param psn 24 bits, higher bits are cut off
 */
export function writeBth(
  view: DataView,
  offset: number,
  opcode: number,
  flags: number,
  padCount: number,
  pkey: number,
  destQpn: number,
  ackReq: boolean,
  psn: number,
): void {
  view.setUint8(offset + field.opcode, opcode);
  view.setUint8(offset + field.flags, (flags & 0xc0) | ((padCount & 3) << 4));
  view.setUint16(offset + field.pkey, pkey);
  view.setUint32(offset + field.destQpnWord, destQpn & 0xffffff);
  view.setUint32(offset + field.psnWord, (ackReq ? 0x80000000 : 0) | (psn & 0xffffff));
}

/** Sets FECN and BECN after `writeBth`; a CNP carries BECN. */
export function setBthCongestion(view: DataView, offset: number, bits: number): void {
  view.setUint8(offset + field.congestion, bits & 0xc0);
}
