/**
 * Hello and HelloAck: they fill the private data of the CM's REQ and REP (IBTA annex A4). No header
 * of rdma_cm comes before them: Hello contains the addresses itself.
 */
import { type Bsdh, BSDH_BYTES, emitBsdh, MIDS, type MidName, parseBsdh } from './bsdh.js';
import { readLayout, uint, type Values, writeLayout } from './fields.js';
import { demand } from './wire-error.js';

/** Private data of a REQ and of a REP, filled with zeros. */
export const HELLO_BYTES = 92;
export const HELLO_ACK_BYTES = 196;
/** Values of `len` that other stacks send: FreeBSD does not count the padding. */
const HELLO_LENGTHS: readonly number[] = [76, HELLO_BYTES];
const HELLO_ACK_LENGTHS: readonly number[] = [180, HELLO_ACK_BYTES];

/** Version 2.2. */
export const VERSION = 0x22;
const ADDRESS_BYTES = 16;
const SOURCE_AT = 32;
const DESTINATION_AT = 48;
const IPV4 = 0x40;
const IPV6 = 0x60;
/** Capability: `extendedMaxAdverts` replaces `maxAdverts`. */
export const EXTENDED_MAX_ADVERTS = 2;

const COMMON = {
  version: uint(BSDH_BYTES, 1),
  ip: uint(17, 1),
  maxAdverts: uint(19, 1),
};
const HELLO = {
  ...COMMON,
  desiredRemoteBytes: uint(20, 4),
  localBytes: uint(24, 4),
  localPort: uint(28, 2),
  extendedMaxAdverts: uint(64, 2),
};
const HELLO_ACK = { ...COMMON, actualBytes: uint(20, 4) };

/** 16 bytes; an IPv4 address is the last 4, after zeros. */
export type IpBytes = Uint8Array;

export interface Hello {
  /** Receives that are posted. */
  readonly bufs: number;
  /** Major version in the upper 4 bits, minor in the lower. */
  readonly version: number;
  readonly isIpv6: boolean;
  /** SrcAvails, and SinkAvails, that may be outstanding at a time: 1 to 255. */
  readonly maxAdverts: number;
  /** Size that it requests for the peer's receives. */
  readonly desiredRemoteBytes: number;
  /** Size of its own receives. */
  readonly localBytes: number;
  readonly localPort: number;
  readonly source: IpBytes;
  readonly destination: IpBytes;
}

export interface HelloAck {
  readonly bufs: number;
  readonly version: number;
  readonly isIpv6: boolean;
  readonly maxAdverts: number;
  /** Size of a receive. */
  readonly actualBytes: number;
}

/** @throws RangeError if a value does not fit its field */
export function emitHello(hello: Hello): Uint8Array {
  const data = new Uint8Array(HELLO_BYTES);
  emitBsdh(data, first('HELLO', hello.bufs, HELLO_BYTES));
  const ip = hello.isIpv6 ? IPV6 : IPV4;
  writeLayout(data, HELLO, { ...numbers(hello), ip, extendedMaxAdverts: 0 });
  data.set(hello.source.subarray(0, ADDRESS_BYTES), SOURCE_AT);
  data.set(hello.destination.subarray(0, ADDRESS_BYTES), DESTINATION_AT);
  return data;
}

/** @throws SdpWireError naming field, value and limit */
export function parseHello(data: Uint8Array): Hello {
  const { bufs } = parseFirst(data, 'HELLO', HELLO_LENGTHS);
  const values = readLayout(data, HELLO);
  const extended = (values.ip & EXTENDED_MAX_ADVERTS) !== 0;
  return {
    ...parseCommon(bufs, values, extended ? values.extendedMaxAdverts : values.maxAdverts),
    desiredRemoteBytes: values.desiredRemoteBytes,
    localBytes: values.localBytes,
    localPort: values.localPort,
    source: data.slice(SOURCE_AT, SOURCE_AT + ADDRESS_BYTES),
    destination: data.slice(DESTINATION_AT, DESTINATION_AT + ADDRESS_BYTES),
  };
}

/** @throws RangeError if a value does not fit its field */
export function emitHelloAck(ack: HelloAck): Uint8Array {
  const data = new Uint8Array(HELLO_ACK_BYTES);
  emitBsdh(data, first('HELLO_ACK', ack.bufs, HELLO_ACK_BYTES));
  const { version, maxAdverts, actualBytes } = ack;
  writeLayout(data, HELLO_ACK, {
    ...{ version, maxAdverts, actualBytes },
    ip: ack.isIpv6 ? IPV6 : IPV4,
  });
  return data;
}

/** @throws SdpWireError naming field, value and limit */
export function parseHelloAck(data: Uint8Array): HelloAck {
  const { bufs } = parseFirst(data, 'HELLO_ACK', HELLO_ACK_LENGTHS);
  const values = readLayout(data, HELLO_ACK);
  return {
    ...parseCommon(bufs, values, values.maxAdverts),
    actualBytes: values.actualBytes,
  };
}

function numbers({
  version,
  maxAdverts,
  desiredRemoteBytes,
  localBytes,
  localPort,
}: Hello): Omit<Values<keyof typeof HELLO>, 'ip' | 'extendedMaxAdverts'> {
  return { version, maxAdverts, desiredRemoteBytes, localBytes, localPort };
}

/**
 * The header of the first message. Both sides use sequence number 0; the first message of the
 * connection has 1.
 */
function first(mid: MidName, bufs: number, len: number): Bsdh {
  return { mid, flags: 0, bufs, len, mseq: 0, mseqAck: 0 };
}

function parseFirst(data: Uint8Array, wanted: MidName, lengths: readonly number[]): Bsdh {
  const header = parseBsdh(data);
  const { number } = MIDS[wanted];
  demand(header.mid === wanted, 'bsdh.mid', MIDS[header.mid].number, `${number}: ${wanted}`);
  demand(lengths.includes(header.len), 'bsdh.len', header.len, `${lengths.join(' or ')}`);
  const least = Math.min(...lengths);
  demand(data.length >= least, 'bytes of private data', data.length, `${least} or more`);
  demand(header.mseq === 0, 'bsdh.mseq', header.mseq, `0 in ${wanted}`);
  return header;
}

function parseCommon(
  bufs: number,
  { version, ip }: Values<'version' | 'ip'>,
  maxAdverts: number,
): Pick<HelloAck, 'bufs' | 'version' | 'isIpv6' | 'maxAdverts'> {
  const family = ip & 0xf0;
  demand(family === IPV4 || family === IPV6, 'hello.ip', ip, '0x40 or 0x60 in its upper bits');
  demand(maxAdverts > 0, 'hello.maxAdverts', maxAdverts, '1 or more');
  return { bufs, version, isIpv6: family === IPV6, maxAdverts };
}
