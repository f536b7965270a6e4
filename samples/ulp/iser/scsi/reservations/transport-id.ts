/** Initiator ports in the TransportID format of iSCSI (SPC-4 7.6.4.6). */

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
