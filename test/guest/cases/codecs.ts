// Our codecs, before any of our sockets: they read what the kernel has sent, agree with it on every
// ICRC and IP identification, and write its CM messages again to the byte.
import assert from 'node:assert/strict';

import { emitCmMad, parseCmMad } from '../../../plugins/cm/wire/message.js';
import { BTH_LENGTH } from '../../../core/spi/wire/bth.js';
import { icrcPacket, PseudoHeader, readIcrc } from '../../../providers/hca/wire/icrc.js';
import { solveIdentification } from '../../../providers/softroce/dgram/identification.js';
import {
  checkPacket,
  HEADER_LENGTH_OF,
  ICRC_LENGTH,
  PACKET_CHECK,
} from '../../../core/spi/wire/packet-layout.js';
import { readPcap } from '../pcap.js';

const ETHERNET_BYTES = 14;
const UDP_BYTES = 8;
const ETHERTYPE_IPV4 = 0x0800;
const UD_SEND_ONLY = 0x64;
const CM_MESSAGES_OF_A_CONNECTION = 5;

interface Datagram {
  readonly sourceGid: Uint8Array;
  readonly destinationGid: Uint8Array;
  readonly sourcePort: number;
  readonly destinationPort: number;
  /** Undefined on IPv6. */
  readonly ipId: number | undefined;
  /** BTH to ICRC. */
  readonly payload: Buffer;
}

/** @param leastMads messages of the CM that must be in the capture */
export function assertCodecsAgree(file: string, leastMads = CM_MESSAGES_OF_A_CONNECTION): void {
  const datagrams = readPcap(file).map(datagramOf);
  for (const [index, datagram] of datagrams.entries()) {
    assertPacketAgrees(datagram, `${file}, frame ${index + 1}`);
  }
  const mads = datagrams.flatMap(({ payload }) => madOf(payload) ?? []);
  assert.ok(mads.length >= leastMads, `${mads.length} MADs`);
  for (const mad of mads) {
    const parsed = parseCmMad(mad);
    assert.ok(parsed !== undefined, `not taken for a CM message: ${mad.toString('hex')}`);
    assert.deepEqual(Buffer.from(emitCmMad(parsed)), mad, parsed.message.name);
  }
}

function assertPacketAgrees(datagram: Datagram, where: string): void {
  const { payload } = datagram;
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  const end = payload.length - ICRC_LENGTH;
  assert.equal(checkPacket(view, 0, end), PACKET_CHECK.ok, where);
  const pseudo = new PseudoHeader().setFlow(
    datagram.sourceGid,
    datagram.destinationGid,
    datagram.sourcePort,
    datagram.destinationPort,
  );
  const icrcWith = (ipId: number): number =>
    icrcPacket(pseudo.begin(payload.length, ipId), payload, 0, end);
  const received = readIcrc(view, end);
  assert.equal(icrcWith(datagram.ipId ?? 0), received, where);
  if (datagram.ipId !== undefined) {
    assert.equal(solveIdentification(received ^ icrcWith(0), end), datagram.ipId, where);
  }
}

/** The MAD in a packet to QP1, if it is one. */
function madOf(payload: Buffer): Buffer | undefined {
  if (payload[0] !== UD_SEND_ONLY) return undefined;
  const start = HEADER_LENGTH_OF[UD_SEND_ONLY] ?? BTH_LENGTH;
  return payload.subarray(start, payload.length - ICRC_LENGTH);
}

function datagramOf(frame: Buffer): Datagram {
  const isIpv4 = frame.readUInt16BE(12) === ETHERTYPE_IPV4;
  const ip = frame.subarray(ETHERNET_BYTES);
  const ipBytes = isIpv4 ? 20 : 40;
  const udpBytes = ip.readUInt16BE(ipBytes + 4);
  return {
    sourceGid: isIpv4 ? mappedGid(ip.subarray(12, 16)) : ip.subarray(8, 24),
    destinationGid: isIpv4 ? mappedGid(ip.subarray(16, 20)) : ip.subarray(24, 40),
    sourcePort: ip.readUInt16BE(ipBytes),
    destinationPort: ip.readUInt16BE(ipBytes + 2),
    ipId: isIpv4 ? ip.readUInt16BE(4) : undefined,
    payload: ip.subarray(ipBytes + UDP_BYTES, ipBytes + udpBytes),
  };
}

function mappedGid(ipv4: Buffer): Uint8Array {
  const gid = new Uint8Array(16);
  gid.fill(0xff, 10, 12);
  gid.set(ipv4, 12);
  return gid;
}
