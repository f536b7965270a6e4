/** Parameters of connect and accept. */
import { DatError } from '../errors/index.js';
import { CmPrivateData, type Gid, gidFromIp } from '../spi/index.js';
import { ConnectFlags, Qos } from './constants.js';
import {
  checkInteger,
  checkOneOf,
  checkOptions,
  checkPrivateData,
  checkTimeout,
  invalid,
} from './guards.js';

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

/** Checked, with every default filled in. */
export interface CheckedConnectOptions {
  readonly remoteGid: Gid;
  readonly port: number;
  readonly timeoutUs: number;
  readonly privateData: Uint8Array;
}

const OPERATION = 'ep.connect';
const KNOWN = ['address', 'connQual', 'timeoutMs', 'privateData', 'qos', 'flags'];

/** @throws DatError */
export function checkConnectOptions(options: ConnectOptions): CheckedConnectOptions {
  checkOptions(OPERATION, 1, options, KNOWN);
  const remoteGid = checkAddress(options.address);
  checkConnQual(OPERATION, 3, options.connQual);
  const timeoutMs = options.timeoutMs ?? Infinity;
  checkTimeout(OPERATION, 4, 'timeoutMs', timeoutMs);
  const privateData = checkPrivateData(OPERATION, 6, options.privateData, CmPrivateData.REQ);
  checkModel(options.qos ?? Qos.BEST_EFFORT, Object.values(Qos), 7, 'qos');
  const flags = options.flags ?? ConnectFlags.DEFAULT;
  checkModel(flags, Object.values(ConnectFlags), 8, 'flags');
  return { remoteGid, port: options.connQual, timeoutUs: timeoutMs * 1000, privateData };
}

/** A port: where rdma_cm listens and connects. */
export function checkConnQual(operation: string, position: number, connQual: unknown): void {
  checkInteger(operation, position, 'connQual', connQual, 1, 65535);
}

function checkAddress(address: unknown): Gid {
  if (typeof address !== 'string') {
    throw invalid(OPERATION, 2, 'address', address, 'the text of an IP address');
  }
  try {
    return gidFromIp(address);
  } catch (cause) {
    throw new DatError('DAT_INVALID_ADDRESS', {
      subtype: 'DAT_INVALID_ADDRESS_MALFORMED',
      operation: OPERATION,
      message: `${JSON.stringify(address)} is not an IP address`,
      hint: 'names are not resolved: pass an IPv4 or IPv6 address',
      value: address,
      cause,
    });
  }
}

/** The first of the values is what we support. */
function checkModel(
  value: unknown,
  known: readonly number[],
  position: number,
  name: string,
): void {
  checkOneOf(OPERATION, position, name, value, known);
  if (value === known[0]) return;
  throw new DatError('DAT_MODEL_NOT_SUPPORTED', {
    operation: OPERATION,
    message: `${name} ${String(value)} is not supported; only ${known[0]} is`,
    value,
  });
}
