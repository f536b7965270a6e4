/** Datagrams of a flood: CM messages as one address may send them, of each kind that costs. */
import { DEFAULT_PKEY, type Gid, GSI_QKEY, GSI_QPN, PortSpace } from '../../core/spi/index.js';
import { cmaHeaderOf } from '../../plugins/cm/messages/cma-contents.js';
import { joinCmaPrivateData } from '../../plugins/cm/wire/cma-header.js';
import { type CmMessage, emitCmMad } from '../../plugins/cm/wire/message.js';
import { type CmReq, NO_ALTERNATE_PATH, ROCE_LID } from '../../plugins/cm/wire/req.js';
import { BTH_LENGTH, writeBth } from '../../core/spi/wire/bth.js';
import { DETH_LENGTH, writeDeth } from '../../providers/hca/wire/extended-headers.js';
import { icrcPacket, type PseudoHeader, writeIcrc } from '../../providers/hca/wire/icrc.js';
import { UD } from '../../core/spi/wire/opcode.js';

/** How the messages of a flood differ from each other. */
export const FLOOD_KINDS = {
  repeated: 'one REQ, again and again',
  fresh: 'each REQ for a connection of its own, never completed',
  refused: 'each REQ new, for what nobody listens on',
  stray: 'each a DREQ for no connection',
} as const;
export type FloodKind = keyof typeof FLOOD_KINDS;

export interface FloodTarget {
  readonly kind: FloodKind;
  readonly from: Gid;
  readonly to: Gid;
  /** Port of the service that is asked for. */
  readonly connQual: number;
}

const HEADER_BYTES = BTH_LENGTH + DETH_LENGTH;
const ICRC_BYTES = 4;
const FIRST_QPN = 0x1000;

/** The n-th MAD of a flood. */
export function floodMad(target: FloodTarget, n: number): Uint8Array {
  const which = target.kind === 'repeated' ? 0 : n;
  const message = target.kind === 'stray' ? strayDreq(which) : floodReq(target, which);
  const ids = { transactionIdHi: 0x0f100d, transactionIdLo: which >>> 0, attributeModifier: 0 };
  return emitCmMad({ ...ids, message });
}

/** A MAD as a packet to QP1, from the BTH on and without ICRC. */
export function gsiPacket(mad: Uint8Array, psn: number): Uint8Array {
  const packet = new Uint8Array(HEADER_BYTES + mad.length);
  const view = new DataView(packet.buffer);
  writeBth(view, 0, UD.sendOnly, 0, GSI_QPN, psn);
  writeDeth(view, BTH_LENGTH, GSI_QKEY, GSI_QPN);
  packet.set(mad, HEADER_BYTES);
  return packet;
}

/** The n-th datagram, with the ICRC of its flow. */
export function floodDatagram(target: FloodTarget, flow: PseudoHeader, n: number): Uint8Array {
  const packet = gsiPacket(floodMad(target, n), n);
  const datagram = new Uint8Array(packet.length + ICRC_BYTES);
  datagram.set(packet);
  const register = flow.begin(datagram.length, 0);
  const icrc = icrcPacket(register, datagram, 0, packet.length);
  writeIcrc(new DataView(datagram.buffer), packet.length, icrc);
  return datagram;
}

function strayDreq(n: number): CmMessage {
  const ids = { localCommId: n + 1, remoteCommId: 0xf100d, remoteQpn: 0xfffff0 };
  return { name: 'DREQ', body: { ...ids, privateData: new Uint8Array(0) } };
}

function floodReq({ kind, from, to, connQual }: FloodTarget, n: number): CmMessage {
  const port = kind === 'refused' ? connQual + 1 : connQual;
  const header = cmaHeaderOf(from, to, 40_000);
  const body: CmReq = {
    ...NO_ALTERNATE_PATH,
    localCommId: n + 1,
    vendorId: 0,
    serviceId: (PortSpace.TCP << 16n) | BigInt(port),
    localCaGuid: 0xf100dn,
    localQkey: 0,
    localQpn: FIRST_QPN + (n & 0x7fffff),
    responderResources: 1,
    localEecn: 0,
    initiatorDepth: 1,
    remoteEecn: 0,
    remoteCmResponseTimeout: 20,
    transportServiceType: 0,
    endToEndFlowControl: 0,
    startingPsn: 0,
    localCmResponseTimeout: 20,
    retryCount: 7,
    partitionKey: DEFAULT_PKEY,
    pathMtu: 3,
    rdcExists: 0,
    rnrRetryCount: 7,
    maxCmRetries: 15,
    srq: 0,
    sapSupported: 0,
    extendedTransportType: 0,
    primaryLocalLid: ROCE_LID,
    primaryRemoteLid: ROCE_LID,
    primaryLocalGid: from,
    primaryRemoteGid: to,
    primaryFlowLabel: 0,
    primaryPacketRate: 0,
    primaryTrafficClass: 0,
    primaryHopLimit: 64,
    primarySl: 0,
    primarySubnetLocal: 0,
    primaryLocalAckTimeout: 18,
    privateData: joinCmaPrivateData(header, new Uint8Array(0), 56),
  };
  return { name: 'REQ', body };
}
