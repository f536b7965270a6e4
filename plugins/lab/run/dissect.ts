/** Dissects a packet: a line for the ladder, and every field by the tables of the codecs. */
import {
  bthAckReq,
  bthDestQpn,
  bthOpcode,
  bthPadCount,
  bthPkey,
  bthPsn,
  bthSolicited,
  bthTransportVersion,
} from '../../../core/spi/wire/bth.js';
import { type FieldReader, lower24 } from '../../../core/spi/wire/field.js';
import {
  HEADER_LENGTH,
  type HeaderName,
  OPCODES,
  OPERATION,
} from '../../../core/spi/wire/opcode.js';
import {
  checkPacket,
  ICRC_LENGTH,
  PACKET_CHECK,
  payloadLength,
} from '../../../core/spi/wire/packet-layout.js';
import { GSI_QPN, MAD_BYTES, MadMethod, nameOf, parseMadHeader } from '../../../core/spi/index.js';
import * as atomic from '../../../providers/hca/wire/extended-headers.js';
import {
  aethSyndrome,
  dethQkey,
  dethSrcQpn,
  iethRkey,
  immdtValue,
  rethDmaLength,
  rethRkey,
  rethVaHi,
  rethVaLo,
  xrcethSrqn,
} from '../../../providers/hca/wire/extended-headers.js';
import {
  AETH_TYPE,
  NAK_CODE,
  rnrTimerUs,
  syndromeType,
  syndromeValue,
} from '../../../providers/hca/wire/aeth-syndrome.js';
import { CM_CODECS, parseCmMad } from '../../cm/wire/message.js';
import { rejectReasonName } from '../../cm/wire/rej.js';

/** Colours of the ladder. */
export type PacketKind = 'data' | 'read' | 'ack' | 'nak' | 'cm' | 'mad' | 'other';

export interface Summary {
  readonly kind: PacketKind;
  /** `SEND ONLY`, `REP`, `RNR NAK`. */
  readonly name: string;
  /** `PSN 5, 1024 bytes`. */
  readonly detail: string;
  readonly payloadBytes: number;
}

export interface FieldGroup {
  readonly name: string;
  readonly fields: readonly (readonly [name: string, value: string])[];
}

type Row = readonly [name: string, text: (view: DataView, at: number) => string];

const number =
  (read: FieldReader) =>
  (view: DataView, at: number): string =>
    String(read(view, at));
const hex =
  (read: FieldReader, digits = 8) =>
  (view: DataView, at: number): string =>
    hexOf(read(view, at), digits);
const wide =
  (hi: FieldReader, lo: FieldReader) =>
  (view: DataView, at: number): string =>
    `0x${((BigInt(hi(view, at)) << 32n) | BigInt(lo(view, at))).toString(16)}`;
const yes =
  (read: (view: DataView, at: number) => boolean) =>
  (view: DataView, at: number): string =>
    read(view, at) ? 'yes' : 'no';

const RKEY_OF_RETH = hex(rethRkey);

/** The fields of each header, in their order on the wire (IBTA 9.2, 9.3). */
const FIELDS: Readonly<Record<HeaderName | 'BTH', readonly Row[]>> = {
  BTH: [
    ['opcode', (view, at) => `${hexOf(bthOpcode(view, at), 2)} ${opcodeName(bthOpcode(view, at))}`],
    ['solicited event', yes(bthSolicited)],
    ['pad bytes', number(bthPadCount)],
    ['transport version', number(bthTransportVersion)],
    ['partition key', hex(bthPkey, 4)],
    ['destination QPN', number(bthDestQpn)],
    ['ACK requested', yes(bthAckReq)],
    ['PSN', number(bthPsn)],
  ],
  RDETH: [],
  FETH: [],
  DETH: [
    ['Q_Key', hex(dethQkey)],
    ['source QPN', number(dethSrcQpn)],
  ],
  XRCETH: [['receive queue', number(xrcethSrqn)]],
  RETH: [
    ['address', wide(rethVaHi, rethVaLo)],
    ['R_Key', RKEY_OF_RETH],
    ['length of the message', number(rethDmaLength)],
  ],
  AtomicETH: [
    ['address', wide(atomic.atomicVaHi, atomic.atomicVaLo)],
    ['R_Key', hex(atomic.atomicRkey)],
    ['swap or add', wide(atomic.atomicSwapAddHi, atomic.atomicSwapAddLo)],
    ['compare', wide(atomic.atomicCompareHi, atomic.atomicCompareLo)],
  ],
  AETH: [
    ['syndrome', (view, at) => `${hexOf(aethSyndrome(view, at), 2)} ${syndromeText(view, at)}`],
    ['message sequence number', number(lower24(0))],
  ],
  AtomicAckETH: [['original value', wide(atomic.atomicAckHi, atomic.atomicAckLo)]],
  ImmDt: [['immediate data', hex(immdtValue)]],
  IETH: [['R_Key to invalidate', hex(iethRkey)]],
};

const BTH_LENGTH = 12;
const MOST_SHOWN_BYTES = 64;

function hexOf(value: number, digits: number): string {
  return `0x${value.toString(16).padStart(digits, '0')}`;
}

function opcodeName(opcode: number): string {
  return OPCODES[opcode]?.name ?? 'unknown';
}

function syndromeText(view: DataView, at: number): string {
  const syndrome = aethSyndrome(view, at);
  const value = syndromeValue(syndrome);
  switch (syndromeType(syndrome)) {
    case AETH_TYPE.ack:
      return 'ACK';
    case AETH_TYPE.rnrNak:
      return `RNR NAK: wait ${rnrTimerUs(value) / 1000} ms`;
    case AETH_TYPE.nak:
      return `NAK:${inWords(` ${nameOf(NAK_CODE, value)}`)}`;
    default:
      return 'reserved';
  }
}

function offsetOf(headers: readonly HeaderName[], name: HeaderName): number {
  const before = headers.slice(0, headers.indexOf(name));
  return before.reduce((sum, header) => sum + HEADER_LENGTH[header], BTH_LENGTH);
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The MAD of a packet to or from QP1. */
function madOf(bytes: Uint8Array): Uint8Array | undefined {
  const view = viewOf(bytes);
  const { headers, headerLength } = OPCODES[bthOpcode(view, 0)]!;
  if (bthDestQpn(view, 0) !== GSI_QPN || !headers.includes('DETH')) return undefined;
  const mad = bytes.subarray(headerLength, headerLength + MAD_BYTES);
  return mad.length === MAD_BYTES ? mad : undefined;
}

const isWhole = (bytes: Uint8Array): boolean =>
  checkPacket(viewOf(bytes), 0, bytes.length - ICRC_LENGTH) === PACKET_CHECK.ok;

/** @param bytes from the BTH to the ICRC */
export function summaryOf(bytes: Uint8Array): Summary {
  if (!isWhole(bytes)) {
    return {
      kind: 'other',
      name: 'not a packet',
      detail: `${bytes.length} bytes`,
      payloadBytes: 0,
    };
  }
  const mad = madOf(bytes);
  if (mad) return summaryOfMad(mad);
  const view = viewOf(bytes);
  const { operation, headers, transport, name } = OPCODES[bthOpcode(view, 0)]!;
  const payloadBytes = payloadLength(view, 0, bytes.length - ICRC_LENGTH);
  const psn = `PSN ${bthPsn(view, 0)}`;
  const detail = payloadBytes > 0 ? `${psn}, ${payloadBytes} bytes` : psn;
  const shortName = name.slice(transport.length + 1).replaceAll('_', ' ');
  if (operation === OPERATION.acknowledge) {
    const at = offsetOf(headers, 'AETH');
    const text = syndromeText(view, at);
    const isAck = syndromeType(aethSyndrome(view, at)) === AETH_TYPE.ack;
    return { kind: isAck ? 'ack' : 'nak', name: text, detail: psn, payloadBytes };
  }
  const isRead = operation === OPERATION.readRequest || operation === OPERATION.readResponse;
  return { kind: isRead ? 'read' : 'data', name: shortName, detail, payloadBytes };
}

function summaryOfMad(mad: Uint8Array): Summary {
  const cm = parseCmMad(mad);
  const payloadBytes = 0;
  if (cm) {
    const { name, body } = cm.message;
    const detail = name === 'REJ' ? rejectReasonName(body.reason) : peerOf(body);
    return { kind: 'cm', name: name.replace('_', ' '), detail, payloadBytes };
  }
  const header = parseMadHeader(mad);
  const name = header ? nameOf(MadMethod, header.method) : 'MAD';
  const detail = header ? `attribute ${hexOf(header.attributeId, 4)}` : '';
  return { kind: 'mad', name, detail, payloadBytes };
}

/** The queue pair that a message of the CM names. */
function peerOf(body: object): string {
  return 'localQpn' in body ? `queue pair ${String(body.localQpn)}` : '';
}

/** Every field of a packet, header by header. */
export function fieldsOf(bytes: Uint8Array): readonly FieldGroup[] {
  if (!isWhole(bytes)) return [{ name: 'Bytes', fields: [['hexadecimal', dump(bytes)]] }];
  const view = viewOf(bytes);
  const { headers, headerLength } = OPCODES[bthOpcode(view, 0)]!;
  const groups: FieldGroup[] = [group('BTH', view, 0)];
  for (const name of headers) groups.push(group(name, view, offsetOf(headers, name)));
  const mad = madOf(bytes);
  if (mad) groups.push(...fieldsOfMad(mad));
  else if (bytes.length > headerLength + ICRC_LENGTH) {
    const payload = bytes.subarray(headerLength, bytes.length - ICRC_LENGTH);
    groups.push({
      name: 'Payload',
      fields: [
        ['bytes', String(payloadLength(view, 0, bytes.length - ICRC_LENGTH))],
        ['hexadecimal', dump(payload)],
        ['text', printable(payload)],
      ],
    });
  }
  const icrc = dump(bytes.subarray(bytes.length - ICRC_LENGTH));
  return [...groups, { name: 'ICRC', fields: [['checksum', icrc]] }];
}

function group(name: HeaderName | 'BTH', view: DataView, at: number): FieldGroup {
  return { name, fields: FIELDS[name].map(([label, text]) => [label, text(view, at)]) };
}

function fieldsOfMad(mad: Uint8Array): FieldGroup[] {
  const header = parseMadHeader(mad);
  if (!header) return [{ name: 'MAD', fields: [['hexadecimal', dump(mad)]] }];
  const groups: FieldGroup[] = [{ name: 'MAD', fields: named(header) }];
  const cm = parseCmMad(mad);
  if (!cm) return [...groups, { name: 'Data', fields: [['hexadecimal', dump(mad.subarray(24))]] }];
  const { name, body } = cm.message;
  const values = body as Readonly<Record<string, unknown>>;
  const fields = Object.keys(CM_CODECS[name].layout).map(
    (key) => [inWords(key), valueText(values[key])] as const,
  );
  return [...groups, { name, fields }];
}

function named(header: object): FieldGroup['fields'] {
  return Object.entries(header).map(([name, value]) => [inWords(name), valueText(value)]);
}

/** `localCommId` as `local comm id`. */
function inWords(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function valueText(value: unknown): string {
  if (value instanceof Uint8Array) return dump(value);
  if (typeof value === 'bigint') return `0x${value.toString(16)}`;
  return typeof value === 'number' && value > 0xffff
    ? `${value} (0x${value.toString(16)})`
    : String(value);
}

/** Bytes in hexadecimal, without zeros at the end. */
function dump(bytes: Uint8Array): string {
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--;
  const shown = bytes.subarray(0, Math.min(end, MOST_SHOWN_BYTES));
  const text = [...shown].map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
  if (end > MOST_SHOWN_BYTES) return `${text} … (${bytes.length} bytes)`;
  const zeros = bytes.length - end;
  return zeros > 4 ? `${text} and ${zeros} zeros`.trimStart() : dumpAll(bytes);
}

function dumpAll(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
}

function printable(bytes: Uint8Array): string {
  const shown = bytes.subarray(0, MOST_SHOWN_BYTES);
  return [...shown]
    .map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '·'))
    .join('');
}
