/** The error of a byte stream, in Node's form: `code`, `errno`, `syscall`. */
import { constants } from 'node:os';

const { errno: ERRNO } = constants;

/** The meaning of each code for a stream over RDMA; the codes are those of POSIX. */
const MEANINGS = {
  EACCES: 'permission denied',
  EADDRINUSE: 'address already in use',
  EADDRNOTAVAIL: 'address not available',
  ECONNABORTED: 'connection aborted on this side',
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset by the peer',
  EHOSTUNREACH: 'no route to the host',
  EIO: 'the device failed',
  EMFILE: 'the device has no resources left',
  ENETUNREACH: 'network is unreachable',
  ENOMEM: 'no memory can be registered',
  EPIPE: 'nothing can be written any more',
  EPROTO: 'the peer violates the protocol',
  EPROTONOSUPPORT: 'the peer speaks another version of the protocol',
  ETIMEDOUT: 'timed out',
} as const;

export type StreamErrorCode = keyof typeof MEANINGS;

export interface StreamErrorOptions {
  /** `connect`, `listen`, `read`, `write`, `shutdown`. */
  readonly syscall: string;
  /** More than the code says, with value and limit. */
  readonly detail?: string | undefined;
  /** The peer's address, or the local one for `listen`. */
  readonly address?: string | undefined;
  readonly port?: number | undefined;
  /** The underlying error: a DatError, a FlowError. */
  readonly cause?: unknown;
}

/** An error like those of node:net. Check `code`. */
export class StreamError extends Error {
  readonly code: StreamErrorCode;
  /** The negative number of the code on this system, as in Node. */
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
