/** Parameters of connect and accept. */
import { DatError } from '../../errors/index.js';
import { CmPrivateData, CmRawPrivateData, type Gid } from '../../spi/index.js';
import { checkIp, malformedAddress } from '../common/ip-address.js';
import { ConnectFlags, Qos } from '../common/constants.js';
import { checkOneOf, checkOptions, checkPrivateData, checkValue } from '../../errors/guards.js';
import { POSITIVE, show } from '../../spi/checks/index.js';
import { checkService, CONN_QUAL, type Service, type ServiceOptions } from './service.js';

/** What `ep.dupConnect` and `ep.commonConnect` take besides where to. */
export interface DupConnectOptions {
  /** Until the peer has answered; default Infinity: as long as the CM retries. */
  readonly timeoutMs?: number;
  /**
   * At most 56 bytes; the peer sees them, padded with zeros to 56. To a service id 92, all that a
   * request has.
   */
  readonly privateData?: Uint8Array;
  /** Qos.BEST_EFFORT is all there is. */
  readonly qos?: number;
  /** ConnectFlags.DEFAULT is all there is. */
  readonly flags?: number;
}

/** What `ep.connect` takes. */
export type ConnectOptions = DupConnectOptions &
  ServiceOptions & {
    /** IP address of the peer, as text. */
    readonly address: string;
  };

/** Address and port in one: `192.0.2.2:7471`, `[2001:db8::2]:7471`, or an object of both. */
export type CommonAddress = string | { readonly address: string; readonly port: number };

/** Where a connect goes. */
export interface ConnectTarget {
  readonly remoteGid: Gid;
  readonly service: Service;
}

interface CheckedOptions {
  readonly timeoutUs: number;
  readonly privateData: Uint8Array;
}

/** Checked, with every default filled in. */
export type CheckedConnectOptions = ConnectTarget & CheckedOptions;

const DUP_KNOWN = ['timeoutMs', 'privateData', 'qos', 'flags'];
const KNOWN = ['address', 'connQual', 'serviceId', ...DUP_KNOWN];

/** @throws DatError */
export function checkConnectOptions(
  operation: string,
  options: ConnectOptions,
): CheckedConnectOptions {
  checkOptions(operation, 2, options, KNOWN);
  const remoteGid = checkIp(operation, 2, options.address);
  const service = checkService(operation, 3, options);
  return { remoteGid, service, ...checkRest(operation, 4, options, service) };
}

/** @throws DatError */
export function checkDupOptions(
  operation: string,
  options: DupConnectOptions,
  service: Service,
): CheckedOptions {
  checkOptions(operation, 3, options, DUP_KNOWN);
  return checkRest(operation, 3, options, service);
}

/** @throws DatError DAT_INVALID_ADDRESS, DAT_INVALID_PARAMETER */
export function checkCommonAddress(
  operation: string,
  value: unknown,
): { readonly remoteGid: Gid; readonly service: number } {
  const { address, port } = typeof value === 'string' ? split(operation, value) : fields(value);
  const remoteGid = checkIp(operation, 2, address);
  checkValue(operation, 2, 'the port of address', port, CONN_QUAL);
  return { remoteGid, service: port };
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
function checkRest(
  operation: string,
  at: number,
  options: DupConnectOptions,
  service: Service,
): CheckedOptions {
  const timeoutMs = options.timeoutMs ?? Infinity;
  checkValue(operation, at, 'timeoutMs', timeoutMs, POSITIVE);
  const { REQ: maxBytes } = typeof service === 'bigint' ? CmRawPrivateData : CmPrivateData;
  const privateData = checkPrivateData(operation, at + 2, options.privateData, maxBytes);
  checkModel(operation, options.qos ?? Qos.BEST_EFFORT, Object.values(Qos), at + 3, 'qos');
  const flags = options.flags ?? ConnectFlags.DEFAULT;
  checkModel(operation, flags, Object.values(ConnectFlags), at + 4, 'flags');
  return { timeoutUs: timeoutMs * 1000, privateData };
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
