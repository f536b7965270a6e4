/**
 * The BTH opcodes as a table (IBTA table 38). `OPCODES[code]` exists for all 256 codes; a code
 * that is not defined has `known: false`. The hot path reads the flat arrays of packet-layout.ts,
 * which are made from this table.
 */

/** The top 3 bits of an opcode. 6 and 7 are vendor defined. */
export const TRANSPORT = { rc: 0, uc: 1, rd: 2, ud: 3, cnp: 4, xrc: 5 } as const;

export type TransportName = 'RC' | 'UC' | 'RD' | 'UD' | 'CNP' | 'XRC' | 'VENDOR';

/** Operation of a packet, whatever the transport. The numbers are ours, not the wire's. */
export const OPERATION = {
  unknown: 0,
  send: 1,
  write: 2,
  readRequest: 3,
  readResponse: 4,
  acknowledge: 5,
  atomicAcknowledge: 6,
  compareSwap: 7,
  fetchAdd: 8,
  resync: 9,
  flush: 10,
  atomicWrite: 11,
  congestionNotification: 12,
} as const;

export type Operation = (typeof OPERATION)[keyof typeof OPERATION];

/** Rules for the payload length (IBTA 9.7.4.1.6 and table 38); see `payloadLengthAllowed`. */
export const PAYLOAD = {
  none: 0,
  /** Exactly the path MTU: first and middle packets. */
  fullMtu: 1,
  /** 0 to the path MTU: only packets. */
  upToMtu: 2,
  /** 1 to the path MTU: last packets. */
  nonEmpty: 3,
  eightBytes: 4,
  sixteenBytes: 5,
} as const;

export type Payload = (typeof PAYLOAD)[keyof typeof PAYLOAD];

/** Bits of `OpcodeInfo.bits`. An only packet both starts and ends its message. */
export const OPCODE_BIT = {
  request: 0x01,
  response: 0x02,
  /** First or only packet of a message. */
  start: 0x04,
  /** Last or only packet of a message. */
  end: 0x08,
  /** Carries immediate data. */
  immediate: 0x10,
  /** Carries an R_Key to invalidate. */
  invalidate: 0x20,
  /** Consumes a receive work request: the end of a SEND or of a WRITE with immediate. */
  receive: 0x40,
} as const;

export type HeaderName =
  | 'RDETH'
  | 'DETH'
  | 'XRCETH'
  | 'FETH'
  | 'RETH'
  | 'AtomicETH'
  | 'AETH'
  | 'AtomicAckETH'
  | 'ImmDt'
  | 'IETH';

export const HEADER_LENGTH: Readonly<Record<HeaderName, number>> = {
  RDETH: 4,
  DETH: 8,
  XRCETH: 4,
  FETH: 4,
  RETH: 16,
  AtomicETH: 28,
  AETH: 4,
  AtomicAckETH: 8,
  ImmDt: 4,
  IETH: 4,
};

export interface OpcodeInfo {
  readonly opcode: number;
  readonly known: boolean;
  /** As in the specification, e.g. `RC_SEND_FIRST`; `UNKNOWN_0x15` when not known. */
  readonly name: string;
  readonly transport: TransportName;
  readonly operation: Operation;
  /** `OPCODE_BIT` flags. */
  readonly bits: number;
  /** Extension headers after the BTH, in wire order. */
  readonly headers: readonly HeaderName[];
  /** Bytes of BTH and extension headers; 0 for a code whose packets are dropped. */
  readonly headerLength: number;
  readonly payload: Payload;
}

interface Row {
  readonly low5: number;
  readonly name: string;
  readonly operation: Operation;
  readonly bits: number;
  readonly headers: readonly HeaderName[];
  readonly payload: Payload;
}

const { request, response, start, end, immediate, invalidate, receive } = OPCODE_BIT;
const { none, fullMtu, upToMtu, nonEmpty, eightBytes, sixteenBytes } = PAYLOAD;
const op = OPERATION;
const only = start | end;
const imm = immediate | receive;
const inv = invalidate | receive;

function row(
  low5: number,
  name: string,
  operation: Operation,
  bits: number,
  headers: readonly HeaderName[],
  payload: Payload,
): Row {
  return { low5, name, operation, bits, headers, payload };
}

// prettier-ignore
const SEND_AND_WRITE: readonly Row[] = [
  row(0x00, 'SEND_FIRST',         op.send,  request | start,          [],                fullMtu),
  row(0x01, 'SEND_MIDDLE',        op.send,  request,                  [],                fullMtu),
  row(0x02, 'SEND_LAST',          op.send,  request | end | receive,  [],                nonEmpty),
  row(0x03, 'SEND_LAST_WITH_IMM', op.send,  request | end | imm,      ['ImmDt'],         nonEmpty),
  row(0x04, 'SEND_ONLY',          op.send,  request | only | receive, [],                upToMtu),
  row(0x05, 'SEND_ONLY_WITH_IMM', op.send,  request | only | imm,     ['ImmDt'],         upToMtu),
  row(0x06, 'WRITE_FIRST',        op.write, request | start,          ['RETH'],          fullMtu),
  row(0x07, 'WRITE_MIDDLE',       op.write, request,                  [],                fullMtu),
  row(0x08, 'WRITE_LAST',         op.write, request | end,            [],                nonEmpty),
  row(0x09, 'WRITE_LAST_WITH_IMM', op.write, request | end | imm,     ['ImmDt'],         nonEmpty),
  row(0x0a, 'WRITE_ONLY',         op.write, request | only,           ['RETH'],          upToMtu),
  row(0x0b, 'WRITE_ONLY_WITH_IMM', op.write, request | only | imm,    ['RETH', 'ImmDt'], upToMtu),
];

// prettier-ignore
const READ_AND_ATOMIC: readonly Row[] = [
  row(0x0c, 'READ_REQUEST',         op.readRequest,  request | only,   ['RETH'],      none),
  row(0x0d, 'READ_RESPONSE_FIRST',  op.readResponse, response | start, ['AETH'],      fullMtu),
  row(0x0e, 'READ_RESPONSE_MIDDLE', op.readResponse, response,         [],            fullMtu),
  row(0x0f, 'READ_RESPONSE_LAST',   op.readResponse, response | end,   ['AETH'],      nonEmpty),
  row(0x10, 'READ_RESPONSE_ONLY',   op.readResponse, response | only,  ['AETH'],      upToMtu),
  row(0x11, 'ACKNOWLEDGE',          op.acknowledge,  response | only,  ['AETH'],      none),
  row(0x12, 'ATOMIC_ACKNOWLEDGE',   op.atomicAcknowledge, response | only,
    ['AETH', 'AtomicAckETH'], none),
  row(0x13, 'COMPARE_SWAP',         op.compareSwap,  request | only,   ['AtomicETH'], none),
  row(0x14, 'FETCH_ADD',            op.fetchAdd,     request | only,   ['AtomicETH'], none),
];

// prettier-ignore
const INVALIDATE_AND_PLACE: readonly Row[] = [
  row(0x16, 'SEND_LAST_WITH_INVALIDATE', op.send, request | end | inv,  ['IETH'],         nonEmpty),
  row(0x17, 'SEND_ONLY_WITH_INVALIDATE', op.send, request | only | inv, ['IETH'],         upToMtu),
  row(0x1c, 'FLUSH',        op.flush,       request | only,             ['FETH', 'RETH'], none),
  row(0x1d, 'ATOMIC_WRITE', op.atomicWrite, request | only,             ['RETH'],       eightBytes),
];

// prettier-ignore
const DATAGRAM: readonly Row[] = [
  row(0x04, 'SEND_ONLY',          op.send, request | only | receive, ['DETH'],          upToMtu),
  row(0x05, 'SEND_ONLY_WITH_IMM', op.send, request | only | imm,     ['DETH', 'ImmDt'], upToMtu),
];

const RD_RESYNC = row(0x15, 'RESYNC', op.resync, request | only, [], none);
const CNP = row(0x01, 'NOTIFICATION', op.congestionNotification, request | only, [], sixteenBytes);

interface Transport {
  readonly name: TransportName;
  readonly rows: readonly Row[];
  /** Headers in front of those of the row. */
  readonly requestPrefix: readonly HeaderName[];
  readonly responsePrefix: readonly HeaderName[];
  /** A responder answers a reserved opcode: NAK invalid request (IBTA 9.7.5.2.5). */
  readonly answersReserved?: true;
}

const RELIABLE = [...SEND_AND_WRITE, ...READ_AND_ATOMIC, ...INVALIDATE_AND_PLACE];

/** Indexed by the top 3 bits. */
const TRANSPORTS: readonly Transport[] = [
  { name: 'RC', rows: RELIABLE, requestPrefix: [], responsePrefix: [], answersReserved: true },
  { name: 'UC', rows: SEND_AND_WRITE, requestPrefix: [], responsePrefix: [] },
  {
    name: 'RD',
    rows: [...SEND_AND_WRITE, ...READ_AND_ATOMIC, RD_RESYNC],
    requestPrefix: ['RDETH', 'DETH'],
    responsePrefix: ['RDETH'],
  },
  { name: 'UD', rows: DATAGRAM, requestPrefix: [], responsePrefix: [] },
  { name: 'CNP', rows: [CNP], requestPrefix: [], responsePrefix: [] },
  {
    name: 'XRC',
    rows: RELIABLE,
    requestPrefix: ['XRCETH'],
    responsePrefix: [],
    answersReserved: true,
  },
  { name: 'VENDOR', rows: [], requestPrefix: [], responsePrefix: [] },
  { name: 'VENDOR', rows: [], requestPrefix: [], responsePrefix: [] },
];

function opcodeInfo(opcode: number): OpcodeInfo {
  const transport = TRANSPORTS[opcode >>> 5] as Transport;
  const found = transport.rows.find((candidate) => candidate.low5 === (opcode & 0x1f));
  if (found === undefined) {
    const answered = transport.answersReserved === true;
    return {
      opcode,
      known: false,
      name: `UNKNOWN_0x${opcode.toString(16).padStart(2, '0')}`,
      transport: transport.name,
      operation: op.unknown,
      bits: answered ? request | only : 0,
      headers: [],
      headerLength: answered ? 12 : 0,
      payload: answered ? upToMtu : none,
    };
  }
  const isRequest = (found.bits & request) !== 0;
  const prefix = isRequest ? transport.requestPrefix : transport.responsePrefix;
  const headers = [...prefix, ...found.headers];
  return {
    opcode,
    known: true,
    name: `${transport.name}_${found.name}`,
    transport: transport.name,
    operation: found.operation,
    bits: found.bits,
    headers,
    headerLength: headers.reduce((sum, header) => sum + HEADER_LENGTH[header], 12),
    payload: found.payload,
  };
}

/** One entry for each of the 256 codes. */
export const OPCODES: readonly OpcodeInfo[] = Array.from({ length: 256 }, (_, code) =>
  opcodeInfo(code),
);

/** RC opcodes by name. Add the base of another transport for the same operation there. */
export const RC = {
  sendFirst: 0x00,
  sendMiddle: 0x01,
  sendLast: 0x02,
  sendLastImm: 0x03,
  sendOnly: 0x04,
  sendOnlyImm: 0x05,
  writeFirst: 0x06,
  writeMiddle: 0x07,
  writeLast: 0x08,
  writeLastImm: 0x09,
  writeOnly: 0x0a,
  writeOnlyImm: 0x0b,
  readRequest: 0x0c,
  readResponseFirst: 0x0d,
  readResponseMiddle: 0x0e,
  readResponseLast: 0x0f,
  readResponseOnly: 0x10,
  acknowledge: 0x11,
  atomicAcknowledge: 0x12,
  compareSwap: 0x13,
  fetchAdd: 0x14,
  sendLastInvalidate: 0x16,
  sendOnlyInvalidate: 0x17,
  flush: 0x1c,
  atomicWrite: 0x1d,
} as const;

export const UC_BASE = 0x20;
export const UD_BASE = 0x60;
export const XRC_BASE = 0xa0;

export const UD = { sendOnly: 0x64, sendOnlyImm: 0x65 } as const;
