/** Headers of RoCEv2 packets in a capture, read without any code of the product. IBTA 9.2. */
import { readPcapRecords } from './pcap.js';

export interface RocePacket {
  readonly timeUs: number;
  /** The IP addresses, in hexadecimal. */
  readonly source: string;
  readonly destination: string;
  readonly opcode: number;
  readonly isSolicited: boolean;
  readonly destinationQpn: number;
  readonly psn: number;
  /** Of a packet with an AETH: acknowledgements, first, last and only responses. */
  readonly syndrome: number | undefined;
}

const ETHERTYPE_IPV4 = 0x0800;
const ETHERNET_BYTES = 14;
const UDP_BYTES = 8;
const BTH_BYTES = 12;
/** READ RESPONSE FIRST, LAST, ONLY; ACKNOWLEDGE; ATOMIC ACKNOWLEDGE. */
const WITH_AETH = new Set([0x0d, 0x0f, 0x10, 0x11, 0x12]);

export const OPCODE = {
  READ_REQUEST: 0x0c,
  READ_RESPONSE_FIRST: 0x0d,
  READ_RESPONSE_MIDDLE: 0x0e,
  READ_RESPONSE_LAST: 0x0f,
  READ_RESPONSE_ONLY: 0x10,
  ACKNOWLEDGE: 0x11,
  ATOMIC_ACKNOWLEDGE: 0x12,
  UD_SEND_ONLY: 0x64,
  UD_SEND_ONLY_WITH_IMMEDIATE: 0x65,
} as const;

/** QP1: communication management. */
const GSI_QPN = 1;

/** What is between queue pairs of applications, in the order captured. */
export function rocePackets(file: string): RocePacket[] {
  return readPcapRecords(file)
    .map(({ frame, timeUs }) => rocePacket(frame, timeUs))
    .filter(({ destinationQpn }) => destinationQpn !== GSI_QPN);
}

function rocePacket(frame: Buffer, timeUs: number): RocePacket {
  const isIpv4 = frame.readUInt16BE(12) === ETHERTYPE_IPV4;
  const ip = frame.subarray(ETHERNET_BYTES);
  const [from, addressBytes, ipBytes] = isIpv4 ? [12, 4, 20] : [8, 16, 40];
  return {
    timeUs,
    source: ip.subarray(from, from + addressBytes).toString('hex'),
    destination: ip.subarray(from + addressBytes, from + 2 * addressBytes).toString('hex'),
    ...parseBth(ip.subarray(ipBytes + UDP_BYTES)),
  };
}

/** @param bth what begins with it */
export function parseBth(bth: Buffer): Omit<RocePacket, 'timeUs' | 'source' | 'destination'> {
  const opcode = bth.readUInt8(0);
  return {
    opcode,
    isSolicited: (bth.readUInt8(1) & 0x80) !== 0,
    destinationQpn: bth.readUIntBE(5, 3),
    psn: bth.readUIntBE(9, 3),
    syndrome: WITH_AETH.has(opcode) ? bth.readUInt8(BTH_BYTES) : undefined,
  };
}

/** An RNR NAK, whose low five bits are the timer; the other NAKs are 0x60 to 0x63. IBTA 9.7.5.2. */
export function isRnr(syndrome: number | undefined): boolean {
  return syndrome !== undefined && syndrome >> 5 === 1;
}

export function isNak(syndrome: number | undefined): boolean {
  return syndrome !== undefined && syndrome >> 5 !== 0;
}

export function isReadResponse(opcode: number): boolean {
  return opcode >= OPCODE.READ_RESPONSE_FIRST && opcode <= OPCODE.READ_RESPONSE_ONLY;
}

/** How an address stands in `source`. */
export function hexOf(address: string): string {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number)).toString('hex');
  const [head = '', tail = ''] = address.split('::').map((part) =>
    part
      .split(':')
      .filter((group) => group !== '')
      .map((group) => group.padStart(4, '0'))
      .join(''),
  );
  return head.padEnd(32 - tail.length, '0') + tail;
}

/** Of a message in several packets; the others follow them. IBTA 9.2.1, table 38. */
const FIRST_OPCODES = { send: 0x00, write: 0x06 } as const;

export type Kind = 'send' | 'send-immediate' | 'send-invalidate' | 'write' | 'write-immediate';

/** The opcodes of a message's packets, in order. */
export function opcodesOf(kind: Kind, lengthBytes: number, mtuBytes: number): number[] {
  const packets = Math.max(1, Math.ceil(lengthBytes / mtuBytes));
  const first = kind.startsWith('send') ? FIRST_OPCODES.send : FIRST_OPCODES.write;
  const withImmediate = kind.endsWith('immediate') ? 1 : 0;
  const isInvalidating = kind === 'send-invalidate';
  if (packets === 1) return [isInvalidating ? 0x17 : first + 4 + withImmediate];
  const middle = new Array<number>(packets - 2).fill(first + 1);
  return [first, ...middle, isInvalidating ? 0x16 : first + 2 + withImmediate];
}

/** The opcodes of the responses to a read. */
export function readResponseOpcodes(lengthBytes: number, mtuBytes: number): number[] {
  const packets = Math.ceil(lengthBytes / mtuBytes);
  if (packets <= 1) return [OPCODE.READ_RESPONSE_ONLY];
  const middle = new Array<number>(packets - 2).fill(OPCODE.READ_RESPONSE_MIDDLE);
  return [OPCODE.READ_RESPONSE_FIRST, ...middle, OPCODE.READ_RESPONSE_LAST];
}
