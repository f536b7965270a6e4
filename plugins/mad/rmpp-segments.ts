/**
 * Splits a MAD of any length into segments (IBTA 13.6.2). Every segment repeats the headers of its
 * class; PayloadLength counts the bytes after the RMPP header, the repeated class headers included.
 */
import { MAD_BYTES } from '../../core/spi/index.js';
import { classHeaderLength } from '../../core/spi/modules/mad-header.js';
import {
  RMPP_DATA_LENGTH,
  RMPP_FLAG,
  RMPP_NO_RESPONSE_TIME,
  RMPP_TYPE,
  RMPP_VERSION,
  emitRmppHeader,
} from './wire/rmpp-header.js';

/** Longest MAD to send in segments: 64 MiB. */
export const MAX_RMPP_BYTES = 1 << 26;

export class Segmentation {
  readonly headerBytes: number;
  readonly dataBytes: number;
  /** Number of segments, at least 1. */
  readonly count: number;
  private readonly pad: number;

  /** @param mad all headers of the class, then the data */
  constructor(
    private readonly mad: Uint8Array,
    managementClass: number,
  ) {
    this.headerBytes = classHeaderLength(managementClass, true);
    this.dataBytes = MAD_BYTES - this.headerBytes;
    const payload = mad.length - this.headerBytes;
    this.count = Math.max(1, Math.ceil(payload / this.dataBytes));
    this.pad = this.count * this.dataBytes - payload;
  }

  /** Writes segment `number` (from 1) into 256 bytes. */
  write(number: number, into: Uint8Array): void {
    const { mad, headerBytes, dataBytes, count } = this;
    const start = headerBytes + (number - 1) * dataBytes;
    const data = mad.subarray(start, start + dataBytes);
    into.set(mad.subarray(0, headerBytes));
    into.set(data, headerBytes);
    into.fill(0, headerBytes + data.length);
    const first = number === 1 ? RMPP_FLAG.FIRST : 0;
    const last = number === count ? RMPP_FLAG.LAST : 0;
    emitRmppHeader(
      {
        version: RMPP_VERSION,
        type: RMPP_TYPE.DATA,
        responseTime: RMPP_NO_RESPONSE_TIME,
        flags: RMPP_FLAG.ACTIVE | first | last,
        status: 0,
        segmentNumber: number,
        payloadLengthOrNewWindowLast: this.payloadLength(number),
      },
      into,
    );
  }

  private payloadLength(number: number): number {
    if (number === this.count) return RMPP_DATA_LENGTH - this.pad;
    return number === 1 ? this.count * RMPP_DATA_LENGTH - this.pad : 0;
  }
}
