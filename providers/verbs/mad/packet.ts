/** The header in front of each MAD that a umad device takes or gives (ib_user_mad(5), ABI 5). */
import { type MadAddress, GSI_QKEY } from '../../../core/spi/index.js';
import type { GidPlaces } from './services.js';

export const PACKET_HEADER_BYTES = 64;

const at = {
  status: 4,
  timeoutMs: 8,
  retries: 12,
  length: 16,
  qpn: 20,
  qkey: 24,
  grhPresent: 32,
  gidIndex: 33,
  hopLimit: 34,
  gid: 36,
} as const;

const HOP_LIMIT = 64;

/** Fields of a packet, without its MAD. */
export interface PacketHeader {
  /** 0, or the errno of a send of ours that is returned. */
  readonly status: number;
  /** The length of header and MAD, even if only a part of it could be read. */
  readonly lengthBytes: number;
  readonly qpn: number;
  /** Undefined without a GRH, as on InfiniBand between ports of one subnet. */
  readonly gid: Uint8Array | undefined;
  /** In the kernel's table. */
  readonly gidIndex: number;
}

/** @param gidIndex in the kernel's table @param timeoutMs 0 when no response is expected */
export function emitPacket(
  { gid, qpn }: Pick<MadAddress, 'gid' | 'qpn'>,
  gidIndex: number,
  timeoutMs: number,
  retries: number,
  mad: Uint8Array,
): Uint8Array {
  const packet = new Uint8Array(PACKET_HEADER_BYTES + mad.length);
  const view = new DataView(packet.buffer);
  view.setUint32(at.timeoutMs, timeoutMs, true);
  view.setUint32(at.retries, retries, true);
  view.setUint32(at.length, packet.length, true);
  view.setUint32(at.qpn, qpn);
  view.setUint32(at.qkey, GSI_QKEY);
  view.setUint8(at.grhPresent, 1);
  view.setUint8(at.gidIndex, gidIndex);
  view.setUint8(at.hopLimit, HOP_LIMIT);
  packet.set(gid, at.gid);
  packet.set(mad, PACKET_HEADER_BYTES);
  return packet;
}

export function parsePacketHeader(packet: Uint8Array): PacketHeader {
  const view = new DataView(packet.buffer, packet.byteOffset, PACKET_HEADER_BYTES);
  const hasGrh = view.getUint8(at.grhPresent) !== 0;
  return {
    status: view.getUint32(at.status, true),
    lengthBytes: view.getUint32(at.length, true),
    qpn: view.getUint32(at.qpn),
    gid: hasGrh ? packet.slice(at.gid, at.gid + 16) : undefined,
    gidIndex: view.getUint8(at.gidIndex),
  };
}

/** Its sender; undefined without a GRH. */
export function sourceOf(
  { gid, gidIndex, qpn }: PacketHeader,
  places: Pick<GidPlaces, 'localGidIndex'>,
): MadAddress | undefined {
  return gid && { gid, localGidIndex: places.localGidIndex(gidIndex), qpn, qkey: GSI_QKEY };
}

const RMPP_HEADER_AT = PACKET_HEADER_BYTES + 24;
/** Version 1, DATA, no response time, active, no status; the rest is the kernel's. */
const RMPP_DATA = [1, 1, 0xf9, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/** Has the kernel send it as a transfer. */
export function markTransfer(packet: Uint8Array): void {
  packet.set(RMPP_DATA, RMPP_HEADER_AT);
}

const TRANSACTION_ID_AT = 8;

/** The kernel puts a number of its own into requests, to know whose the response is. */
export function restoreTransactionId(mad: Uint8Array, hiTid: number): void {
  new DataView(mad.buffer, mad.byteOffset).setUint32(TRANSACTION_ID_AT, hiTid);
}
