import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** What Wireshark's InfiniBand dissector says of one packet. */
export interface Dissection {
  readonly frame: number;
  readonly source: string;
  readonly destination: string;
  /** BTH opcode; undefined if the packet was not taken for RoCEv2. */
  readonly opcode: number | undefined;
  readonly destinationQpn: number;
  readonly psn: number;
  /** Attribute of a CM message (CM_ATTRIBUTE), if it is one. */
  readonly cmAttribute: number | undefined;
  /** Of a REJ. */
  readonly rejectReason: number | undefined;
  /** Of a REJ: hexadecimal digits; empty if there is none. */
  readonly rejectPrivateData: string;
  readonly isMalformed: boolean;
  readonly info: string;
  /** The fields of a CM message, as the dissector prints them; what is absent is empty. */
  readonly cm: Readonly<Record<CmField, string>>;
}

/** Attribute ids of the communication management class. IBTA 1.7 table 102 and 12.6. */
export const CM_ATTRIBUTE = {
  REQ: 0x10,
  MRA: 0x11,
  REJ: 0x12,
  REP: 0x13,
  RTU: 0x14,
  DREQ: 0x15,
  DREP: 0x16,
  SIDR_REQ: 0x17,
  SIDR_REP: 0x18,
} as const;
export type CmName = keyof typeof CM_ATTRIBUTE;

const CM_CLASS = 0x07;
const TIMEOUT_MS = 120_000;
/** Guesses at what messages carry; our payloads are bytes, and a wrong guess is "malformed". */
const PAYLOAD_PROTOCOLS = [
  ...['rpcordma', 'smc', 'smb_direct', 'nvme-rdma', 'lnet', 'iser', 'infiniband.eoib'],
  ...['infiniband_sdp', 'fcoib', 'drbd'],
];
/** As those, without a protocol of its own: reads the first bytes as an EtherType. */
const PAYLOAD_GUESS = 'eth_over_ib';

const PACKET_FIELDS = {
  frame: 'frame.number',
  ipv4Source: 'ip.src',
  ipv6Source: 'ipv6.src',
  ipv4Destination: 'ip.dst',
  ipv6Destination: 'ipv6.dst',
  opcode: 'infiniband.bth.opcode',
  destinationQpn: 'infiniband.bth.destqp',
  psn: 'infiniband.bth.psn',
  mgmtClass: 'infiniband.mad.mgmtclass',
  attribute: 'infiniband.mad.attributeid',
  malformed: '_ws.malformed',
  info: '_ws.col.Info',
} as const;

/** By what they are here; the same thing has a name of its own in each message. */
const CM_FIELDS = {
  transactionId: 'infiniband.mad.transactionid',
  madData: 'infiniband.mad.data',
  reqCommId: 'infiniband.cm.req',
  reqServicePrefix: 'infiniband.cm.req.serviceid.prefix',
  reqServiceProtocol: 'infiniband.cm.req.serviceid.protocol',
  reqServicePort: 'infiniband.cm.req.serviceid.dport',
  reqQpn: 'infiniband.cm.req.localqpn',
  reqStartingPsn: 'infiniband.cm.req.startpsn',
  reqResponderResources: 'infiniband.cm.req.responderres',
  reqInitiatorDepth: 'infiniband.cm.req.initdepth',
  reqServiceType: 'infiniband.cm.req.transpsvctype',
  reqPkey: 'infiniband.cm.req.pkey',
  reqPathMtu: 'infiniband.cm.req.pppmtu',
  reqLocalLid: 'infiniband.cm.req.prim_locallid',
  reqLocalGid: 'infiniband.cm.req.prim_localgid',
  reqRemoteGid: 'infiniband.cm.req.prim_remotegid',
  reqLocalGidIpv4: 'infiniband.cm.req.prim_localgid_ipv4',
  reqRemoteGidIpv4: 'infiniband.cm.req.prim_remotegid_ipv4',
  reqMajorVersion: 'infiniband.cm.req.ip_cm.majv',
  reqIpVersion: 'infiniband.cm.req.ip_cm.ipv',
  reqSourcePort: 'infiniband.cm.req.ip_cm.sport',
  reqSourceIpv4: 'infiniband.cm.req.ip_cm.sip4',
  reqDestinationIpv4: 'infiniband.cm.req.ip_cm.dip4',
  reqSourceIpv6: 'infiniband.cm.req.ip_cm.sip6',
  reqDestinationIpv6: 'infiniband.cm.req.ip_cm.dip6',
  reqPrivateData: 'infiniband.cm.req.ip_cm.private',
  repCommId: 'infiniband.cm.rep',
  repRemoteCommId: 'infiniband.cm.rep.remotecommid',
  repQpn: 'infiniband.cm.rep.localqpn',
  repStartingPsn: 'infiniband.cm.rep.startpsn',
  repResponderResources: 'infiniband.cm.rep.respres',
  repInitiatorDepth: 'infiniband.cm.rep.initdepth',
  repPrivateData: 'infiniband.cm.rep.private',
  rtuCommId: 'infiniband.cm.rtu.localcommid',
  rtuRemoteCommId: 'infiniband.cm.rtu.remotecommid',
  rejCommId: 'infiniband.cm.rej.localcommid',
  rejRemoteCommId: 'infiniband.cm.rej.remotecommid',
  rejMessage: 'infiniband.cm.rej.msgrej',
  rejReason: 'infiniband.cm.rej.reason',
  rejPrivateData: 'infiniband.cm.rej.private',
  dreqCommId: 'infiniband.cm.dreq.localcommid',
  dreqRemoteCommId: 'infiniband.cm.dreq.remotecommid',
  dreqRemoteQpn: 'infiniband.cm.req.remoteqpneecn',
  drepCommId: 'infiniband.cm.drsp.localcommid',
  drepRemoteCommId: 'infiniband.cm.drsp.remotecommid',
} as const;
export type CmField = keyof typeof CM_FIELDS;

type PacketField = keyof typeof PACKET_FIELDS;
const CM_NAMES = Object.keys(CM_FIELDS) as CmField[];
const NAMES = [...(Object.keys(PACKET_FIELDS) as PacketField[]), ...CM_NAMES];

export async function dissect(file: string): Promise<Dissection[]> {
  const fields = [...Object.values(PACKET_FIELDS), ...Object.values(CM_FIELDS)];
  const wanted = fields.flatMap((field) => ['-e', field]);
  const disabled = PAYLOAD_PROTOCOLS.flatMap((protocol) => ['--disable-protocol', protocol]);
  const output = ['-T', 'fields', '-E', 'separator=/t', ...wanted];
  const guess = ['--disable-heuristic', PAYLOAD_GUESS];
  const args = ['-n', ...disabled, ...guess, '-r', file, ...output];
  const { stdout } = await promisify(execFile)('tshark', args, {
    timeout: TIMEOUT_MS,
    maxBuffer: 1 << 29,
  });
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map(parseLine);
}

function parseLine(line: string): Dissection {
  const texts = line.split('\t');
  const cells = Object.fromEntries(NAMES.map((name, at) => [name, texts[at] ?? ''])) as Record<
    PacketField | CmField,
    string
  >;
  const isCm = cells.mgmtClass !== '' && Number(cells.mgmtClass) === CM_CLASS;
  return {
    frame: Number(cells.frame),
    source: cells.ipv4Source === '' ? cells.ipv6Source : cells.ipv4Source,
    destination: cells.ipv4Destination === '' ? cells.ipv6Destination : cells.ipv4Destination,
    opcode: cells.opcode === '' ? undefined : Number(cells.opcode),
    destinationQpn: Number(cells.destinationQpn),
    psn: Number(cells.psn),
    cmAttribute: isCm ? Number(cells.attribute) : undefined,
    rejectReason: cells.rejReason === '' ? undefined : Number(cells.rejReason),
    rejectPrivateData: cells.rejPrivateData.replaceAll(':', ''),
    isMalformed: cells.malformed !== '',
    info: cells.info,
    cm: Object.fromEntries(CM_NAMES.map((name) => [name, cells[name]])) as Record<CmField, string>,
  };
}
