/**
 * Agreements between two devices of ours, beyond the standards. A device encodes its offers in its
 * node GUID, which CM's REQ and REP carry (IBTA 12.6.5, 12.6.8) on any network. A connection uses
 * what both offer. The vendor id of enhanced connection establishment is no alternative: a device
 * whose driver knows it, mlx5, refuses every id but its own, and with it the connection. To a peer
 * of another make a GUID is a number, and its own offers nothing.
 */

/** Offers, one bit each; bit 7 is never used, see `OURS`. */
export const PEER_AGREEMENT = {
  /** ACKs may be sent after a message that answers what they acknowledge. */
  LATE_ACK: 1,
  /** All packets come from one UDP port. */
  ONE_PORT: 2,
  /** RC packets of LOCAL_MTU_BYTES: both are on one host. */
  LOCAL_MTU: 4,
  /**
   * RC packets of CHANNEL_MTU_BYTES through memory that both have mapped: both are on one host. In
   * the GUID of a REP it means that the channel exists, and that this connection uses it.
   */
  CHANNEL: 8,
  /** The device is shared by processes: the top byte of each QPN is the slot of one of them. */
  SLOTS: 16,
  /** ACKs of RC tell how many receives are posted, and one is sent when there are some again. */
  CREDITS: 32,
} as const;

/**
 * The first 24 bits: locally administered, so no manufacturer's. A GUID made from such a MAC
 * address has FF-FE in the middle (EUI-64), where ours has the offers without the highest bit.
 */
const OURS = 0x0a000e;
const OFFERS = 0x7f;

/** @param offers bits of `PEER_AGREEMENT` @param own 32 random bits that tell devices apart */
export function softwareGuid(offers: number, own: number): bigint {
  return (BigInt(OURS) << 40n) | (BigInt(offers & OFFERS) << 32n) | BigInt(own >>> 0);
}

/** The GUID with these offers removed. */
export function withoutOffers(guid: bigint, offers: number): bigint {
  return guid & ~(BigInt(offersOf(guid) & offers) << 32n);
}

/** The part of a GUID that is the same in all GUIDs of a device, whatever they offer. */
export function deviceOf(guid: bigint): bigint {
  return withoutOffers(guid, OFFERS);
}

/**
 * Slot of the process that owns the queue pair; undefined if the device is one process, or unknown.
 */
export function slotOfPeer(guid: bigint, qpn: number): number | undefined {
  return (offersOf(guid) & PEER_AGREEMENT.SLOTS) === 0 ? undefined : slotOfQpn(qpn);
}

/** The top byte of a QPN. */
export function slotOfQpn(qpn: number): number {
  return qpn >>> 16;
}

/** Bits of `PEER_AGREEMENT`: 0 for a device of another make. */
export function offersOf(guid: bigint): number {
  const upper = Number(guid >> 32n);
  return upper >>> 8 === OURS && (upper & ~OFFERS & 0xff) === 0 ? upper & OFFERS : 0;
}
