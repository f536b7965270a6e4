/** The error of a byte stream, in Node's form: `code`, `errno`, `syscall`. */
import { constants } from 'node:os';

const { errno: ERRNO } = constants;

/** The meaning of each code for a stream over RDMA; the codes are those of POSIX. */
const MEANINGS = {
  EACCES: 'this process may not',
  EADDRINUSE: 'address already in use',
  EADDRNOTAVAIL: 'address not available',
  ECONNABORTED: 'the connection was given up here',
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset by the peer',
  EHOSTUNREACH: 'no way to the host',
  EIO: 'the device failed',
  EMFILE: 'the device has no room',
  ENETUNREACH: 'no way to the network',
  ENOMEM: 'no memory can be registered',
  EPIPE: 'nothing can be written any more',
  EPROTO: 'the peer does not keep to the protocol',
  EPROTONOSUPPORT: 'the peer speaks another version of the protocol',
  ETIMEDOUT: 'timed out',
} as const;

export type StreamErrorCode = keyof typeof MEANINGS;

export interface StreamErrorOptions {
  /** `connect`, `listen`, `read`, `write`, `shutdown`. */
  readonly syscall: string;
  /** More than the code says; names value and limit. */
  readonly detail?: string | undefined;
  /** The peer's, or the own address of a `listen`. */
  readonly address?: string | undefined;
  readonly port?: number | undefined;
  /** The underlying error: a DatError, a FlowError. */
  readonly cause?: unknown;
}

/** Looks like an error of node:net. Decide by `code`. */
export class StreamError extends Error {
  readonly code: StreamErrorCode;
  /** Negative, as in Node: that of the code on this system. */
  readonly errno: number;
  readonly syscall: string;
  readonly address: string | undefined;
  readonly port: number | undefined;

  constructor(code: StreamErrorCode, options: StreamErrorOptions) {
    const { syscall, detail, address, port, cause } = options;
    const where = address === undefined ? '' : ` ${address}${port === undefined ? '' : `:${port}`}`;
    const what = detail ?? MEANINGS[code];
    super(`${syscall} ${code}${where}: ${what}`, cause === undefined ? undefined : { cause });
    this.code = code;
    this.errno = -ERRNO[code];
    this.syscall = syscall;
    this.address = address;
    this.port = port;
  }
}
