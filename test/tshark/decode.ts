/** What Wireshark's dissector says of each packet of a capture. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { patience } from '../support/patience.js';

/** By the dissector's names of fields; absent fields are empty texts. */
export type Decoded = Readonly<Record<string, string>>;

const TIMEOUT_MS = patience(60_000);
/** Guesses at what messages carry; ours are bytes, and a wrong guess would be "malformed". */
const PAYLOAD_PROTOCOLS = [
  ...['rpcordma', 'smc', 'smb_direct', 'nvme-rdma', 'lnet', 'iser', 'infiniband.eoib'],
  ...['infiniband_sdp', 'fcoib', 'drbd'],
];
const ALWAYS = [
  'frame.number',
  'infiniband.bth.opcode',
  'infiniband.mad.mgmtclass',
  'infiniband.mad.attributeid',
  '_ws.malformed',
  '_ws.expert.severity',
  '_ws.expert.message',
  '_ws.col.Info',
] as const;
/** PI_NOTE: what is above it is a complaint. */
const NOTE = 0x400000;

/**
 * Every packet of a capture file, with these fields besides those that every check reads.
 * @param carried what messages do carry, of the protocols that are not guessed at else
 */
export async function decode(
  file: string,
  fields: readonly string[] = [],
  carried: readonly string[] = [],
): Promise<Decoded[]> {
  const names = [...ALWAYS, ...fields];
  const args = [
    ...['-n', '-r', file],
    ...PAYLOAD_PROTOCOLS.filter((protocol) => !carried.includes(protocol)).flatMap((protocol) => [
      '--disable-protocol',
      protocol,
    ]),
    ...['-T', 'fields', '-E', 'separator=/t', '-E', 'occurrence=f'],
    ...names.flatMap((name) => ['-e', name]),
  ];
  const { stdout } = await promisify(execFile)('tshark', args, {
    timeout: TIMEOUT_MS,
    maxBuffer: 1 << 28,
  });
  const lines = stdout.split('\n').filter((line) => line !== '');
  return lines.map((line) => {
    const values = line.split('\t');
    return Object.fromEntries(names.map((name, column) => [name, values[column] ?? '']));
  });
}

/** Why the dissector is not content with a packet; undefined if it is. */
export function complaintOf(packet: Decoded): string | undefined {
  const at = `frame ${packet['frame.number']} (${packet['_ws.col.Info']})`;
  if (packet['_ws.malformed'] !== '') return `${at}: malformed`;
  if (packet['infiniband.bth.opcode'] === '') return `${at}: not taken for RoCEv2`;
  if (Number(packet['_ws.expert.severity']) > NOTE) return `${at}: ${packet['_ws.expert.message']}`;
  return undefined;
}
