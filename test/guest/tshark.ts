import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** What Wireshark's InfiniBand dissector says of one packet. */
export interface Dissection {
  readonly frame: number;
  readonly source: string;
  /** BTH opcode; undefined if the packet was not taken for RoCEv2. */
  readonly opcode: number | undefined;
  /** Attribute of a CM message (CM_ATTRIBUTE), if it is one. */
  readonly cmAttribute: number | undefined;
  /** Of a REJ. */
  readonly rejectReason: number | undefined;
  /** Of a REJ: hexadecimal digits; empty if there is none. */
  readonly rejectPrivateData: string;
  readonly isMalformed: boolean;
  readonly info: string;
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

const CM_CLASS = 0x07;
const TIMEOUT_MS = 60_000;
/** Guesses at what messages carry; our payloads are bytes, and a wrong guess is "malformed". */
const PAYLOAD_PROTOCOLS = [
  ...['rpcordma', 'smc', 'smb_direct', 'nvme-rdma', 'lnet', 'iser', 'infiniband.eoib'],
  ...['infiniband_sdp', 'fcoib', 'drbd'],
];
/** As those, without a protocol of its own: reads the first bytes as an EtherType. */
const PAYLOAD_GUESS = 'eth_over_ib';
const FIELDS = [
  'frame.number',
  'ip.src',
  'ipv6.src',
  'infiniband.bth.opcode',
  'infiniband.mad.mgmtclass',
  'infiniband.mad.attributeid',
  'infiniband.cm.rej.reason',
  'infiniband.cm.rej.private',
  '_ws.malformed',
  '_ws.col.Info',
];

export async function dissect(file: string): Promise<Dissection[]> {
  const fields = FIELDS.flatMap((field) => ['-e', field]);
  const disabled = PAYLOAD_PROTOCOLS.flatMap((protocol) => ['--disable-protocol', protocol]);
  const output = ['-T', 'fields', '-E', 'separator=/t', ...fields];
  const guess = ['--disable-heuristic', PAYLOAD_GUESS];
  const args = ['-n', ...disabled, ...guess, '-r', file, ...output];
  const { stdout } = await promisify(execFile)('tshark', args, {
    timeout: TIMEOUT_MS,
    maxBuffer: 1 << 28,
  });
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map(parseLine);
}

function parseLine(line: string): Dissection {
  const [frame, ipv4, ipv6, opcode, mgmtClass, attribute, reason, rejectData, malformed, info] =
    line.split('\t');
  const isCm = mgmtClass !== undefined && mgmtClass !== '' && Number(mgmtClass) === CM_CLASS;
  return {
    frame: Number(frame),
    source: ipv4 === '' ? (ipv6 ?? '') : (ipv4 ?? ''),
    opcode: opcode === undefined || opcode === '' ? undefined : Number(opcode),
    cmAttribute: isCm ? Number(attribute) : undefined,
    rejectReason: reason === undefined || reason === '' ? undefined : Number(reason),
    rejectPrivateData: (rejectData ?? '').replaceAll(':', ''),
    isMalformed: malformed !== undefined && malformed !== '',
    info: info ?? '',
  };
}
