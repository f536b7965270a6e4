/**
 * Common service point (dat_csp): listens on an address and port, like a socket. The peer connects
 * with `ep.commonConnect`.
 */
import type { Evd } from '../../evd/index.js';
import { DatError } from '../../errors/index.js';
import { type CmRequest, type Gid, gidEquals, ipFromGid, isIpv4Gid } from '../../spi/index.js';
import { checkCommonAddress, type CommonAddress } from '../endpoint/connect-options.js';
import type { AdapterState } from '../common/adapter-state.js';
import { ServicePoint, type ServicePointInit } from './service-point.js';
import type { Ia } from '../ia/ia.js';
import { checkOptions } from '../../errors/guards.js';
import { listen } from './listen.js';

/** DAT_COMM: the socket that a common service point corresponds to. */
export interface Comm {
  readonly domain: 'AF_INET' | 'AF_INET6';
  readonly type: 'SOCK_STREAM';
  readonly protocol: 'IPPROTO_TCP';
}

/** Options of `ia.createCsp`. */
export interface CspOptions {
  /**
   * Where to listen: an address of the adapter or a wildcard, and a port: `192.0.2.1:7471`,
   * `0.0.0.0:7471`, `[::]:7471`, or `{ address, port }`.
   */
  readonly address: CommonAddress;
  /** Default: the family of the address. */
  readonly comm?: Partial<Comm>;
  /** Takes the requests; without one, they are offered as `csp.requests$`. */
  readonly evd?: Evd;
}

/** Result of `csp.query()`. */
export interface CspParameters {
  readonly ia: Ia;
  readonly comm: Comm;
  readonly address: string;
  readonly port: number;
  readonly evd: Evd;
}

/** Made by `ia.createCsp()`. It keeps the process alive while it listens. */
export class Csp extends ServicePoint {
  readonly handleType = 'CSP';

  /** @internal */
  constructor(
    core: AdapterState,
    operation: string,
    init: ServicePointInit,
    private readonly gid: Gid,
    private readonly comm: Comm,
  ) {
    super(core, operation, init);
  }

  /** dat_csp_query. */
  query(): CspParameters {
    this.assertLive('csp.query');
    return {
      ia: this.ia,
      comm: this.comm,
      address: ipFromGid(this.gid),
      port: this.connQual,
      evd: this.evd,
    };
  }

  /** A wildcard accepts requests to any address. */
  protected override wants(request: CmRequest): boolean {
    return isWildcard(this.gid) || gidEquals(this.gid, request.localGid);
  }
}

/**
 * Checks the address and port of a common service point.
 * @throws DatError DAT_INVALID_ADDRESS (malformed, or not ours), DAT_COMM_NOT_SUPPORTED,
 * DAT_INVALID_PARAMETER (port)
 */
export function checkCspAddress(
  operation: string,
  options: CspOptions,
  ours: readonly Gid[],
): ReturnType<typeof checkCommonAddress> & { readonly comm: Comm } {
  const target = checkCommonAddress(operation, options.address);
  const { remoteGid: gid } = target;
  if (!isWildcard(gid) && !ours.some((own) => gidEquals(own, gid))) {
    throw new DatError('DAT_INVALID_ADDRESS', {
      subtype: 'DAT_INVALID_ADDRESS_UNSUPPORTED',
      operation,
      message: `${ipFromGid(gid)} is no address of the adapter`,
      hint: `it has ${ours.map(ipFromGid).join(', ')}; 0.0.0.0 and :: stand for all`,
      value: options.address,
    });
  }
  const comm: Comm = {
    domain: isIpv4Gid(gid) ? 'AF_INET' : 'AF_INET6',
    type: 'SOCK_STREAM',
    protocol: 'IPPROTO_TCP',
  };
  checkComm(operation, options.comm, comm);
  return { ...target, comm };
}

function checkComm(operation: string, given: unknown, comm: Comm): void {
  if (given === undefined) return;
  const entries = typeof given === 'object' && given !== null ? Object.entries(given) : undefined;
  const known: Readonly<Record<string, unknown>> = { ...comm };
  if (entries?.every(([key, value]) => known[key] === value) === true) return;
  throw new DatError('DAT_COMM_NOT_SUPPORTED', {
    operation,
    message: `comm must be ${Object.values(comm).join(', ')} for this address`,
    value: given,
  });
}

/** 0.0.0.0 or ::. */
function isWildcard(gid: Gid): boolean {
  return gid.every((byte, i) => byte === 0 || (isIpv4Gid(gid) && i < 12));
}

export function createCsp(core: AdapterState, options: CspOptions): Csp {
  const operation = core.begin('ia.createCsp', { address: options?.address });
  checkOptions(operation, options, ['address', 'comm', 'evd']);
  const { gids } = core.context.device;
  const { remoteGid, service, comm } = checkCspAddress(operation, options, gids);
  core.checkEvdOption(operation, 'cr', options.evd);
  return listen(
    core,
    service,
    options.evd,
    (init) => new Csp(core, operation, init, remoteGid, comm),
  );
}
