/** Parameters of connect and accept. */
import {
  checkOneOf,
  checkOptions,
  checkPrivateData,
  checkU64,
  checkValue,
  invalid,
} from '../../errors/guards.js';
import { DatError } from '../../errors/index.js';
import { integer, POSITIVE, show } from '../../spi/checks/index.js';
import {
  CmPrivateData,
  CmRawPrivateData,
  type Gid,
  isPortServiceId,
  PortSpace,
  serviceIdOf,
} from '../../spi/index.js';
import { ConnectFlags, Qos } from '../common/constants.js';
import { checkIp, malformedAddress } from '../common/ip-address.js';

// The target of a request: a port of rdma_cm's TCP port space, which is DAT's connection qualifier
// here, or a plain service id of InfiniBand.

/** A port (number), or a service id (bigint). */
export type Service = number | bigint;

/** Exactly one of the two. */
export type ServiceOptions =
  | {
      /** Connection qualifier: a port of rdma_cm's TCP port space, 1 to 65535. */
      readonly connQual: number;
      readonly serviceId?: undefined;
    }
  | {
      readonly connQual?: undefined;
      /**
       * Service id (IBTA 12.7.3), 0 to 2^64 - 1, outside rdma_cm's port spaces: for protocols older
       * than rdma_cm. Requests have no rdma_cm header, and 92 bytes of private data. If the CM
       * knows ports only, as over verbs, it is DAT_MODEL_NOT_SUPPORTED.
       */
      readonly serviceId: bigint;
    };

/** A port: rdma_cm listens on it and connects to it. */
export const CONN_QUAL = integer(1, 65535);

const NOT_OF_A_PORT = 'none of a port of rdma_cm, which is `connQual`: its requests have a header';
const ONE_OF_BOTH = 'left out where `serviceId` is given';

/** @throws DatError DAT_INVALID_PARAMETER, also for both of them, and for neither */
export function checkService(operation: string, { connQual, serviceId }: ServiceOptions): Service {
  if (serviceId === undefined) {
    checkValue(operation, 'connQual', connQual, CONN_QUAL);
    return connQual;
  }
  if (connQual !== undefined) {
    throw invalid(operation, 'connQual', connQual, ONE_OF_BOTH);
  }
  checkU64(operation, 'serviceId', serviceId);
  if (isPortServiceId(serviceId)) {
    throw invalid(operation, 'serviceId', serviceId, NOT_OF_A_PORT);
  }
  return serviceId;
}

/** The service id in CM messages. */
export function serviceIdFor(service: Service): bigint {
  return typeof service === 'bigint' ? service : serviceIdOf(PortSpace.TCP, service);
}

/** The connection qualifier; 0 for a service id of no port. */
export function connQualOf(service: Service): number {
  return typeof service === 'bigint' ? 0 : service;
}

/** For messages: `connection qualifier 7471`, `service id 0x100000001`. */
export function serviceText(service: Service): string {
  return typeof service === 'bigint'
    ? `service id 0x${service.toString(16)}`
    : `connection qualifier ${service}`;
}

/** Options of `ep.dupConnect` and `ep.commonConnect`, besides the target. */
export interface DupConnectOptions {
  /** Until the peer has answered; default Infinity: as long as the CM retries. */
  readonly timeoutMs?: number;
  /**
   * At most 56 bytes; the peer sees them padded with zeros to 56. To a service id 92, the whole
   * private data of a request.
   */
  readonly privateData?: Uint8Array;
  /** Only Qos.BEST_EFFORT is supported. */
  readonly qos?: number;
  /** Only ConnectFlags.DEFAULT is supported. */
  readonly flags?: number;
}

/** Options of `ep.connect`. */
export type ConnectOptions = DupConnectOptions &
  ServiceOptions & {
    /** IP address of the peer, as text. */
    readonly address: string;
  };

/** Address and port in one: `192.0.2.2:7471`, `[2001:db8::2]:7471`, or an object of both. */
export type CommonAddress = string | { readonly address: string; readonly port: number };

/** Target of a connect. */
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
  checkOptions(operation, options, KNOWN);
  const remoteGid = checkIp(operation, options.address);
  const service = checkService(operation, options);
  return { remoteGid, service, ...checkRest(operation, options, service) };
}

/** @throws DatError */
export function checkDupOptions(
  operation: string,
  options: DupConnectOptions,
  service: Service,
): CheckedOptions {
  checkOptions(operation, options, DUP_KNOWN);
  return checkRest(operation, options, service);
}

/** @throws DatError DAT_INVALID_ADDRESS, DAT_INVALID_PARAMETER */
export function checkCommonAddress(
  operation: string,
  value: unknown,
): { readonly remoteGid: Gid; readonly service: number } {
  const { address, port } = typeof value === 'string' ? split(operation, value) : fields(value);
  const remoteGid = checkIp(operation, address);
  checkValue(operation, 'the port of address', port, CONN_QUAL, 'address');
  return { remoteGid, service: port };
}

/** The last colon ends the address; brackets protect those of IPv6. */
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

function checkRest(
  operation: string,
  options: DupConnectOptions,
  service: Service,
): CheckedOptions {
  const timeoutMs = options.timeoutMs ?? Infinity;
  checkValue(operation, 'timeoutMs', timeoutMs, POSITIVE);
  const { REQ: maxBytes } = typeof service === 'bigint' ? CmRawPrivateData : CmPrivateData;
  const privateData = checkPrivateData(operation, options.privateData, maxBytes);
  checkModel(operation, options.qos ?? Qos.BEST_EFFORT, Object.values(Qos), 'qos');
  const flags = options.flags ?? ConnectFlags.DEFAULT;
  checkModel(operation, flags, Object.values(ConnectFlags), 'flags');
  return { timeoutUs: timeoutMs * 1000, privateData };
}

/** Only the first of the values is supported. */
function checkModel(
  operation: string,
  value: unknown,
  known: readonly number[],
  name: string,
): void {
  checkOneOf(operation, name, value, known);
  if (value === known[0]) return;
  throw new DatError('DAT_MODEL_NOT_SUPPORTED', {
    operation,
    message: `${name} ${show(value)} is not supported; only ${known[0]} is`,
    value,
  });
}
