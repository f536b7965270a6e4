/**
 * Types of persistent reservations, and the access that each allows others (SPC-4 5.13.7, table
 * 66).
 */

/** Codes of the TYPE field. */
export const ReservationType = {
  WRITE_EXCLUSIVE: 0x1,
  EXCLUSIVE_ACCESS: 0x3,
  WRITE_EXCLUSIVE_REGISTRANTS_ONLY: 0x5,
  EXCLUSIVE_ACCESS_REGISTRANTS_ONLY: 0x6,
  WRITE_EXCLUSIVE_ALL_REGISTRANTS: 0x7,
  EXCLUSIVE_ACCESS_ALL_REGISTRANTS: 0x8,
} as const;
export type ReservationType = (typeof ReservationType)[keyof typeof ReservationType];

/**
 * The kind of access of a command, for reservations:
 * - `exempt`: runs whatever is reserved;
 * - `inspect`: runs under any persistent reservation, not under RESERVE(6) of another nexus;
 * - `read`: also runs under a persistent reservation that only excludes writes;
 * - `write`: runs for holders and, if the type says so, for registrants.
 */
export type Access = 'exempt' | 'inspect' | 'read' | 'write';

interface Rules {
  readonly excludes: 'writes' | 'all';
  /** Registered nexuses may do what the holder may. */
  readonly registrantsMay: boolean;
  /** Every registered nexus is a holder. */
  readonly registrantsHold: boolean;
}

const RULES: Readonly<Record<ReservationType, Rules>> = {
  0x1: { excludes: 'writes', registrantsMay: false, registrantsHold: false },
  0x3: { excludes: 'all', registrantsMay: false, registrantsHold: false },
  0x5: { excludes: 'writes', registrantsMay: true, registrantsHold: false },
  0x6: { excludes: 'all', registrantsMay: true, registrantsHold: false },
  0x7: { excludes: 'writes', registrantsMay: true, registrantsHold: true },
  0x8: { excludes: 'all', registrantsMay: true, registrantsHold: true },
};

export function isReservationType(type: number): type is ReservationType {
  return type in RULES;
}

export function registrantsHold(type: ReservationType): boolean {
  return RULES[type].registrantsHold;
}

/** Registrants lose something when the reservation goes, and are told. */
export function concernsRegistrants(type: ReservationType): boolean {
  return RULES[type].registrantsMay;
}

/** True if a nexus that does not hold the reservation may do this. */
export function isAllowed(type: ReservationType, access: Access, isRegistered: boolean): boolean {
  const { excludes, registrantsMay } = RULES[type];
  if (access === 'exempt' || access === 'inspect') return true;
  if (registrantsMay && isRegistered) return true;
  return access === 'read' && excludes === 'writes';
}

// Initiator ports in the TransportID format of iSCSI (SPC-4 7.6.4.6).

/** Format code 01b: name, separator and ISID; protocol identifier 5h: iSCSI. */
const WITH_ISID = 0x45;
const HEADER_BYTES = 4;

/** The name ends with a zero and is padded to a multiple of 4, at least 20 bytes. */
export function emitTransportId(initiatorPort: string): Uint8Array {
  const name = new TextEncoder().encode(`${initiatorPort}\0`);
  const length = Math.max(20, Math.ceil(name.length / 4) * 4);
  const id = new Uint8Array(HEADER_BYTES + length);
  id[0] = WITH_ISID;
  new DataView(id.buffer).setUint16(2, length);
  id.set(name, HEADER_BYTES);
  return id;
}

/** The port and how many bytes it took, or undefined for what is no such TransportID. */
export function readTransportId(
  bytes: Uint8Array,
): { readonly initiatorPort: string; readonly lengthBytes: number } | undefined {
  if (bytes.length < HEADER_BYTES || bytes[0] !== WITH_ISID) return undefined;
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint16(2);
  const lengthBytes = HEADER_BYTES + length;
  if (length < 20 || length % 4 !== 0 || lengthBytes > bytes.length) return undefined;
  const text = new TextDecoder().decode(bytes.subarray(HEADER_BYTES, lengthBytes));
  const initiatorPort = text.slice(0, text.indexOf('\0'));
  return text.includes('\0') && initiatorPort.includes(',i,0x')
    ? { initiatorPort, lengthBytes }
    : undefined;
}
