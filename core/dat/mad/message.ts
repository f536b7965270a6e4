/** Management datagrams as consumers see them: fields and data, without headers. */
import {
  MAD_BYTES,
  type MadHeader,
  classHeaderLength,
  emitMadHeader,
  headerOfAnyLength,
  isRmppClass,
  isVendorRange2,
} from '../../spi/index.js';

/** MAD header and RMPP header. */
const RMPP_HEADERS_BYTES = 36;
const RMPP_FLAGS_AT = 26;
const RMPP_ACTIVE = 1;
const OUI_AT = 37;

/** Headers that a class puts around the data. */
export interface MadFormat {
  readonly managementClass: number;
  readonly oui: number | undefined;
  /** Data of any length, in segments; else as much as a MAD holds. */
  readonly rmpp: boolean;
}

/** Start of the consumer's data: behind the common headers. */
export function dataOffset({ managementClass }: MadFormat): number {
  if (isVendorRange2(managementClass)) return classHeaderLength(managementClass, true);
  if (isRmppClass(managementClass)) return RMPP_HEADERS_BYTES;
  return classHeaderLength(managementClass, false);
}

/** Longest data of one MAD. */
export function maxPlainData(format: MadFormat): number {
  return MAD_BYTES - dataOffset(format);
}

export function composeMad(format: MadFormat, header: MadHeader, data: Uint8Array): Uint8Array {
  const offset = dataOffset(format);
  const least = classHeaderLength(format.managementClass, true);
  const length = format.rmpp ? Math.max(least, offset + data.length) : MAD_BYTES;
  const mad = new Uint8Array(length);
  emitMadHeader(header, mad);
  if (format.oui !== undefined) {
    const { oui } = format;
    mad.set([oui >>> 16, (oui >>> 8) & 0xff, oui & 0xff], OUI_AT);
  }
  if (format.rmpp) mad[RMPP_FLAGS_AT] = RMPP_ACTIVE;
  mad.set(data, offset);
  return mad;
}

/** Fields of a MAD that the module has let through, and a copy of its data. */
export function readMad(
  format: MadFormat,
  mad: Uint8Array,
): { readonly header: MadHeader; readonly data: Uint8Array } | undefined {
  const header = headerOfAnyLength(mad);
  return header && { header, data: mad.slice(dataOffset(format)) };
}
