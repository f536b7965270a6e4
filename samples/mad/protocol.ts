/** A directory of a machine, as management datagrams of a vendor class (IBTA 16.5). */

/**
 * The class, in vendor range 2, with its OUI. This one is locally administered: no vendor owns it.
 */
export const DIRECTORY = {
  managementClass: 0x30,
  classVersion: 1,
  oui: 0x02da91,
  rmpp: true,
} as const;

/** Attributes that a Get may request. */
export const Attribute = {
  /** One line about the machine. */
  SUMMARY: 0x0010,
  /** The names in the directory that the machine shows, if any; one per line. */
  LISTING: 0x0011,
  /** A text of as many bytes as the attribute modifier says, for transfers of any length. */
  TEXT: 0x0012,
} as const;

/** Longest `TEXT`. */
export const MAX_TEXT_BYTES = 1 << 20;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export const toBytes = (text: string): Uint8Array => encoder.encode(text);
export const toText = (bytes: Uint8Array): string => decoder.decode(bytes);
