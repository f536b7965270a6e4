/** Resolving a datagram service: address and connection qualifier to queue pair (SIDR). */
import { DatError, type DatErrorOptions, type DatType, spiCall } from '../../errors/index.js';
import { interruptedError } from '../../evd/queue/waiter.js';
import {
  type CmModule,
  CmPrivateData,
  type CmResolution,
  type CmResolveResult,
  type Gid,
  PortSpace,
  serviceIdOf,
} from '../../spi/index.js';
import { checkAddressed } from '../common/ip-address.js';
import { CONN_QUAL } from '../endpoint/connect-options.js';
import { checkPrivateData } from '../../errors/guards.js';
import { ANYTHING, POSITIVE, SIGNAL, optional } from '../../spi/checks/index.js';
import { notSupported } from '../common/unsupported.js';

/** Options of `ep.resolve`. */
export interface ResolveOptions {
  /** IP address of the peer, as text. */
  readonly address: string;
  /** Connection qualifier: a port of rdma_cm's UDP port space, 1 to 65535. */
  readonly connQual: number;
  /** Until the peer has answered; default Infinity: as long as the CM retries, about 54 s. */
  readonly timeoutMs?: number;
  /** At most 180 bytes; the peer sees them, padded with zeros to 180. */
  readonly privateData?: Uint8Array;
  /** Gives up when it fires. */
  readonly signal?: AbortSignal;
}

export interface CheckedResolveOptions {
  readonly remoteGid: Gid;
  readonly address: string;
  readonly port: number;
  readonly timeoutUs: number;
  readonly privateData: Uint8Array;
  readonly signal: AbortSignal | undefined;
}

const OPERATION = 'ep.resolve';
/** For a CM module without SIDR, which can neither ask nor serve. */
export const NO_SIDR = 'the CM module resolves no services';
const RESOLVE_OPTIONS = {
  address: ANYTHING,
  connQual: CONN_QUAL,
  timeoutMs: optional(POSITIVE),
  privateData: ANYTHING,
  signal: optional(SIGNAL),
};

/** @throws DatError */
export function checkResolveOptions(options: ResolveOptions): CheckedResolveOptions {
  const remoteGid = checkAddressed(OPERATION, options, RESOLVE_OPTIONS);
  const { address, connQual: port, timeoutMs = Infinity, signal } = options;
  const privateData = checkPrivateData(OPERATION, options.privateData, CmPrivateData.SIDR_REQ);
  return { remoteGid, address, port, timeoutUs: timeoutMs * 1000, privateData, signal };
}

/** Pending questions, each of which ends once. */
export class Resolutions {
  private readonly pending = new Set<(error: DatError) => void>();

  constructor(
    private readonly cm: CmModule,
    private readonly processHold: { retain(): void; release(): void },
  ) {}

  /** @throws DatError (as a rejection) that tells the consumer what to do */
  resolve(options: CheckedResolveOptions): Promise<CmResolveResult> {
    const { signal } = options;
    if (signal?.aborted === true) return Promise.reject(interruptedError(OPERATION, signal));
    return new Promise((resolve, reject) => {
      let resolution: CmResolution | undefined = undefined;
      const fail = (error: DatError): void => {
        resolution?.cancel();
        end();
        reject(error);
      };
      const onAbort = (): void => fail(interruptedError(OPERATION, signal as AbortSignal));
      const end = (): void => {
        this.pending.delete(fail);
        signal?.removeEventListener('abort', onAbort);
        this.processHold.release();
      };
      resolution = this.begin(options, (result) => {
        end();
        if (result.status === 0) resolve(result);
        else reject(errorOf(result, options));
      });
      this.pending.add(fail);
      this.processHold.retain();
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** Ends all questions with the endpoint. */
  abort(by: string): void {
    for (const fail of [...this.pending]) {
      fail(failure('DAT_ABORT', { message: `the endpoint was ended by ${by}` }));
    }
  }

  private begin(
    { remoteGid, port, privateData, timeoutUs, address }: CheckedResolveOptions,
    onResult: (result: CmResolveResult) => void,
  ): CmResolution {
    const serviceId = serviceIdOf(PortSpace.UDP, port);
    const resolve = this.cm.resolve?.bind(this.cm);
    if (resolve === undefined) throw notSupported(OPERATION, NO_SIDR);
    return spiCall({ operation: OPERATION, value: address }, () =>
      resolve({ remoteGid, serviceId, privateData, timeoutUs, onResult }),
    );
  }
}

function failure(code: DatType, options: Omit<DatErrorOptions, 'operation'>): DatError {
  return new DatError(code, { operation: OPERATION, ...options });
}

/** SIDR_REP status codes that an application may see (IBTA 12.11.2.1). */
const REFUSALS: Readonly<Record<number, string>> = {
  1: 'nobody serves datagrams there',
  2: 'the service refused',
  3: 'the service has no queue pair left',
};
const NOT_SERVED = 1;

function errorOf(result: CmResolveResult, options: CheckedResolveOptions): DatError {
  const { status, privateData } = result;
  const { address, port } = options;
  const where = `port ${port} of ${address}`;
  if (result.failure === 'timed-out') {
    const message = `no answer from ${where} after ${options.timeoutUs / 1000} ms`;
    return failure('DAT_TIMEOUT_EXPIRED', { message, value: options.timeoutUs / 1000 });
  }
  if (status < 0) {
    return failure('DAT_INVALID_ADDRESS', {
      subtype: 'DAT_INVALID_ADDRESS_UNREACHABLE',
      message: `no answer from ${where}${result.detail === undefined ? '' : `: ${result.detail}`}`,
      value: address,
    });
  }
  const why = REFUSALS[status] ?? `the peer answered with SIDR status ${status}`;
  return failure('DAT_CONN_QUAL_UNAVAILABLE', {
    message: `${where}: ${why}`,
    hint:
      status === NOT_SERVED ? `the peer serves it by ep.serve({ connQual: ${port} })` : undefined,
    value: { status, privateData },
  });
}
