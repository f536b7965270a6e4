/** Parameters of connect and accept. */
import { DatError } from '../../errors/index.js';
import { CmPrivateData, type Gid } from '../../spi/index.js';
import { checkIp, malformedAddress } from '../common/ip-address.js';
import { ConnectFlags, Qos } from '../common/constants.js';
import { checkOneOf, checkOptions, checkPrivateData, checkValue } from '../../errors/guards.js';
import { POSITIVE, integer, show } from '../../spi/checks/index.js';

/** What `ep.connect` takes. */
export interface ConnectOptions {
  /** IP address of the peer, as text. */
  readonly address: string;
  /** Connection qualifier: a port of rdma_cm's TCP port space, 1 to 65535. */
  readonly connQual: number;
  /** Until the peer has answered; default Infinity: as long as the CM retries. */
  readonly timeoutMs?: number;
  /** At most 56 bytes; the peer sees them, padded with zeros to 56. */
  readonly privateData?: Uint8Array;
  /** Qos.BEST_EFFORT is all there is. */
  readonly qos?: number;
  /** ConnectFlags.DEFAULT is all there is. */
  readonly flags?: number;
}

/** What `ep.dupConnect` and `ep.commonConnect` take besides where to. */
export type DupConnectOptions = Omit<ConnectOptions, 'address' | 'connQual'>;

/** Address and port in one: `192.0.2.2:7471`, `[2001:db8::2]:7471`, or an object of both. */
export type CommonAddress = string | { readonly address: string; readonly port: number };

/** Where a connect goes. */
export interface ConnectTarget {
  readonly remoteGid: Gid;
  readonly port: number;
}

interface CheckedOptions {
  readonly timeoutUs: number;
  readonly privateData: Uint8Array;
}

/** Checked, with every default filled in. */
export type CheckedConnectOptions = ConnectTarget & CheckedOptions;

const DUP_KNOWN = ['timeoutMs', 'privateData', 'qos', 'flags'];
const KNOWN = ['address', 'connQual', ...DUP_KNOWN];

/** @throws DatError */
export function checkConnectOptions(
  operation: string,
  options: ConnectOptions,
): CheckedConnectOptions {
  checkOptions(operation, 2, options, KNOWN);
  const remoteGid = checkIp(operation, 2, options.address);
  checkConnQual(operation, 3, options.connQual);
  return { remoteGid, port: options.connQual, ...checkRest(operation, 4, options) };
}

/** @throws DatError */
export function checkDupOptions(operation: string, options: DupConnectOptions): CheckedOptions {
  checkOptions(operation, 3, options, DUP_KNOWN);
  return checkRest(operation, 3, options);
}

/** @throws DatError DAT_INVALID_ADDRESS, DAT_INVALID_PARAMETER */
export function checkCommonAddress(operation: string, value: unknown): ConnectTarget {
  const { address, port } = typeof value === 'string' ? split(operation, value) : fields(value);
  const remoteGid = checkIp(operation, 2, address);
  checkValue(operation, 2, 'the port of address', port, CONN_QUAL);
  return { remoteGid, port };
}

/** The last colon ends the address; brackets keep those of IPv6 apart. */
function split(operation: string, text: string): { address: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text);
  if (match !== null) return { address: match[1] ?? match[2] ?? '', port: Number(match[3]) };
  throw malformedAddress(operation, text, 'is not an address and a port', 'such as 192.0.2.2:7471');
}

function fields(value: unknown): { address: unknown; port: unknown } {
  if (typeof value !== 'object' || value === null) return { address: value, port: undefined };
  const { address, port } = value as { address?: unknown; port?: unknown };
  return { address, port };
}

/** @param at where DAT has the timeout; size and bytes of the private data, QoS, flags follow */
function checkRest(operation: string, at: number, options: DupConnectOptions): CheckedOptions {
  const timeoutMs = options.timeoutMs ?? Infinity;
  checkValue(operation, at, 'timeoutMs', timeoutMs, POSITIVE);
  const privateData = checkPrivateData(operation, at + 2, options.privateData, CmPrivateData.REQ);
  checkModel(operation, options.qos ?? Qos.BEST_EFFORT, Object.values(Qos), at + 3, 'qos');
  const flags = options.flags ?? ConnectFlags.DEFAULT;
  checkModel(operation, flags, Object.values(ConnectFlags), at + 4, 'flags');
  return { timeoutUs: timeoutMs * 1000, privateData };
}

/** A port: where rdma_cm listens and connects. */
export const CONN_QUAL = integer(1, 65535);

export function checkConnQual(operation: string, position: number, connQual: unknown): void {
  checkValue(operation, position, 'connQual', connQual, CONN_QUAL);
}

/** The first of the values is what we support. */
function checkModel(
  operation: string,
  value: unknown,
  known: readonly number[],
  position: number,
  name: string,
): void {
  checkOneOf(operation, position, name, value, known);
  if (value === known[0]) return;
  throw new DatError('DAT_MODEL_NOT_SUPPORTED', {
    operation,
    message: `${name} ${show(value)} is not supported; only ${known[0]} is`,
    value,
  });
}
