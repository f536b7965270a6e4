/** Arguments of sockets and servers: converts the call forms of node:net to options. */
import type { LookupFunction } from 'node:net';
import { type Kind, kinds, mustBe } from 'dapl/spi';

/** The longest timer of Node, in milliseconds. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** The default of node:net. */
const DEFAULT_BACKLOG = 511;

/** Options of `socket.connect`; other options of node:net are ignored. */
export interface ConnectOptions {
  /** 1 to 65535. */
  readonly port: number | string;
  /** A name, or a numeric address. Default `localhost`. */
  readonly host?: string | undefined;
  /** IP version; 0, the default, for either. */
  readonly family?: 0 | 4 | 6 | undefined;
  /** Flags of node:dns for `lookup`. */
  readonly hints?: number | undefined;
  /** Default `dns.lookup`. */
  readonly lookup?: LookupFunction | undefined;
  /** Local address and port. Default: chosen by the protocol. */
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
}

/** Options of `server.listen`; other options of node:net are ignored. */
export interface ListenOptions {
  /** 0 to 65535; 0, the default: chosen by the protocol. */
  readonly port?: number | undefined;
  /** Default, and for `0.0.0.0` and `::`: the address of the protocol's adapter. */
  readonly host?: string | undefined;
  /** Connections that may be half open at a time, 1 to 65535. Default 511. */
  readonly backlog?: number | undefined;
  /** Closes the server when it fires. */
  readonly signal?: AbortSignal | undefined;
}

/** The checked arguments of `socket.connect`. */
export interface ConnectTarget {
  /** A name, or a numeric address. */
  readonly host: string;
  readonly port: number;
  readonly family: 0 | 4 | 6;
  readonly hints: number | undefined;
  readonly lookup: LookupFunction | undefined;
  readonly localAddress: string | undefined;
  readonly localPort: number | undefined;
}

/** The checked arguments of `server.listen`. */
export interface ListenTarget {
  /** Undefined: chosen by the protocol. */
  readonly host: string | undefined;
  readonly port: number;
  readonly backlog: number;
  readonly signal: AbortSignal | undefined;
}

const TYPE_ERRORS: readonly string[] = ['ERR_INVALID_ARG_TYPE', 'ERR_MISSING_ARGS'];

/** The error for an invalid argument or option; `code` is one of Node's. */
function argumentError(code: string, message: string): Error {
  const made = TYPE_ERRORS.includes(code) ? new TypeError(message) : new RangeError(message);
  return Object.assign(made, { code });
}

function check<T>(name: string, value: unknown, kind: Kind<T>, code: string): T {
  if (kind.accepts(value)) return value;
  throw argumentError(code, mustBe(name, value, kind.expected));
}

/**
 * @param min 0 if the port may be chosen for the caller
 * @throws RangeError ERR_SOCKET_BAD_PORT
 */
export function portOf(name: string, value: unknown, min: 0 | 1): number {
  const port = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return check(name, port, kinds.integer(min, 65535), 'ERR_SOCKET_BAD_PORT');
}

/** @throws RangeError ERR_OUT_OF_RANGE */
export function timeoutOf(value: unknown): number {
  const kind = kinds.numberFrom(0, LONGEST_TIMER_MS);
  return Math.ceil(check('timeout', value, kind, 'ERR_OUT_OF_RANGE'));
}

/** @throws TypeError ERR_INVALID_ARG_TYPE for options that an RDMA connection cannot support */
export function refuseUnsupported(options: object, names: readonly string[]): void {
  const given = names.find((name) => (options as Record<string, unknown>)[name] !== undefined);
  if (given === undefined) return;
  const message = `${given} is given; sockets over RDMA have host and port`;
  throw argumentError('ERR_INVALID_ARG_TYPE', message);
}

type Callback = () => void;
type Given = Readonly<Record<string, unknown>>;

function callbackOf(args: readonly unknown[]): Callback | undefined {
  const last = args.at(-1);
  return typeof last === 'function' ? (last as Callback) : undefined;
}

function isOptions(value: unknown): value is Given {
  return kinds.OBJECT.accepts(value);
}

/**
 * `(options[, cb])`, `(port[, host][, cb])`.
 * @throws TypeError ERR_INVALID_ARG_TYPE, ERR_MISSING_ARGS; RangeError ERR_SOCKET_BAD_PORT
 */
export function connectArguments(args: readonly unknown[]): {
  readonly target: ConnectTarget;
  readonly callback: Callback | undefined;
} {
  const [first, second] = args;
  const options = isOptions(first)
    ? first
    : { port: first, host: typeof second === 'function' ? undefined : second };
  return { target: connectTarget(options), callback: callbackOf(args) };
}

function connectTarget(given: Given): ConnectTarget {
  refuseUnsupported(given, ['path', 'fd', 'handle']);
  const type = 'ERR_INVALID_ARG_TYPE';
  const { localPort } = given;
  if (given['port'] === undefined) {
    const message = 'port is missing; sockets over RDMA connect to a port from 1 to 65535';
    throw argumentError('ERR_MISSING_ARGS', message);
  }
  return {
    host: check('host', given['host'] ?? 'localhost', kinds.TEXT, type),
    port: portOf('port', given['port'], 1),
    family: check('family', familyOf(given['family']), kinds.oneOf([0, 4, 6] as const), type),
    hints: check('hints', given['hints'], kinds.optional(kinds.integer(0, 2 ** 31)), type),
    lookup: check('lookup', given['lookup'], kinds.optional(kinds.FUNCTION), type) as
      LookupFunction | undefined,
    localAddress: check('localAddress', given['localAddress'], kinds.optional(kinds.TEXT), type),
    localPort: localPort === undefined ? undefined : portOf('localPort', localPort, 0) || undefined,
  };
}

/**
 * The family of an option: node:dns accepts `IPv4`, too; http passes undefined or null for either.
 */
function familyOf(value: unknown): unknown {
  if (value === 'IPv4') return 4;
  if (value === 'IPv6') return 6;
  return value ?? 0;
}

/**
 * `(options[, cb])`, `([port[, host[, backlog]]][, cb])`, `(port, backlog[, cb])`.
 * @throws TypeError ERR_INVALID_ARG_TYPE, RangeError ERR_SOCKET_BAD_PORT
 */
export function listenArguments(args: readonly unknown[]): {
  readonly target: ListenTarget;
  readonly callback: Callback | undefined;
} {
  const [first] = args;
  const [port, host, backlog] = args.filter((each) => typeof each !== 'function');
  const options = isOptions(first)
    ? first
    : typeof host === 'number'
      ? { port, backlog: host }
      : { port, host, backlog };
  return { target: listenTarget(options), callback: callbackOf(args) };
}

function listenTarget(given: Given): ListenTarget {
  refuseUnsupported(given, ['path', 'fd', 'handle', '_handle']);
  const type = 'ERR_INVALID_ARG_TYPE';
  return {
    host: check('host', given['host'] ?? undefined, kinds.optional(kinds.TEXT), type),
    port: portOf('port', given['port'] ?? 0, 0),
    backlog: check('backlog', given['backlog'] || DEFAULT_BACKLOG, kinds.integer(1, 65535), type),
    signal: check('signal', given['signal'], kinds.optional(kinds.SIGNAL), type),
  };
}
