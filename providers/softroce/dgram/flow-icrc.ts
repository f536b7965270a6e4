/** The ICRC of the packets of one flow, over node:zlib. The native port has a quicker one. */
import { crc32 } from 'node:zlib';
import type { Gid } from '../../../core/spi/index.js';
import { PseudoHeader } from '../../hca/wire/icrc.js';

export const BTH_BYTES = 12;
export const ICRC_BYTES = 4;

export interface Endpoint {
  readonly gid: Gid;
  readonly port: number;
}

/** Keeps the CRC of the headers before the BTH for the length that was seen last. */
export class FlowIcrc {
  private readonly header: PseudoHeader;
  private datagramBytes = 0;
  private crc = 0;

  constructor(source: Endpoint, destination: Endpoint) {
    const { gid, port } = destination;
    this.header = new PseudoHeader().setFlow(source.gid, gid, source.port, port);
  }

  /**
   * The ICRC with IPv4 identification 0.
   * @param packet BTH to pad; byte 4 (FECN, BECN, reserved) is masked during the call
   */
  icrc(packet: Uint8Array): number {
    const datagramBytes = packet.length + ICRC_BYTES;
    if (datagramBytes !== this.datagramBytes) {
      this.crc = ~this.header.begin(datagramBytes, 0) >>> 0;
      this.datagramBytes = datagramBytes;
    }
    const congestion = packet[4] ?? 0;
    packet[4] = 0xff;
    const value = crc32(packet, this.crc);
    packet[4] = congestion;
    return value;
  }
}
