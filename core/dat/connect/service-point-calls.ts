/** The calls of an interface adapter that make service points. */
import { type Evd, EvdFlags } from '../../evd/index.js';
import { DatError } from '../../errors/index.js';
import { PspFlags } from '../common/constants.js';
import { checkCspAddress, Csp, type CspOptions } from './csp.js';
import { Ep } from '../endpoint/ep.js';
import { checkConnQual } from '../endpoint/connect-options.js';
import { checkOneOf, checkOptions, invalid } from '../common/guards.js';
import { checkHandle } from '../common/handle.js';
import { IaEndpoints } from '../endpoint/endpoint-calls.js';
import { servicePointAt } from '../common/listening.js';
import { Psp, type PspAnyOptions, type PspOptions } from './psp.js';
import { Rsp, type RspOptions } from './rsp.js';
import type { ServicePoint, ServicePointInit } from './service-point.js';

const REQUESTS_QLEN = 64;
/** Where `createPspAny` looks: the ports that need no privilege, as sockets have it. */
const FIRST_ANY = 1024;
const LAST_ANY = 65535;
const PSP_ANY = ['evd', 'flags', 'endpoint'];

export abstract class IaServicePoints extends IaEndpoints {
  /** Where `createPspAny` begins to look. */
  private nextAny = FIRST_ANY;

  /**
   * Listens on a connection qualifier (dat_psp_create).
   * @throws DatError DAT_CONN_QUAL_IN_USE; DAT_INVALID_PARAMETER; DAT_INVALID_HANDLE; with
   * PspFlags.PROVIDER also what `createEndpoint` throws
   */
  createPsp(options: PspOptions): Psp {
    const operation = 'ia.createPsp';
    this.begin(operation, { connQual: options?.connQual });
    checkOptions(operation, 2, options, ['connQual', ...PSP_ANY]);
    checkConnQual(operation, 2, options.connQual);
    const makeEndpoint = this.checkPspOptions(operation, options);
    const { evd }: PspAnyOptions = options;
    return this.listen(options.connQual, evd, (init) => {
      return new Psp(this.self, operation, init, makeEndpoint);
    });
  }

  /**
   * Listens on a connection qualifier of the adapter's choice, from 1024 up: `psp.connQual`
   * (dat_psp_create_any).
   * @throws DatError DAT_CONN_QUAL_UNAVAILABLE when all are taken; as `createPsp`
   */
  createPspAny(options: PspAnyOptions = {}): Psp {
    const operation = 'ia.createPspAny';
    this.begin(operation);
    checkOptions(operation, 3, options, PSP_ANY);
    const { evd }: PspAnyOptions = options;
    const makeEndpoint = this.checkPspOptions(operation, options);
    const make = (init: ServicePointInit): Psp => new Psp(this.self, operation, init, makeEndpoint);
    for (let tries = FIRST_ANY; tries <= LAST_ANY; tries++) {
      const connQual = this.nextAny;
      this.nextAny = connQual < LAST_ANY ? connQual + 1 : FIRST_ANY;
      if (servicePointAt(this.context.cm, connQual) !== undefined) continue;
      try {
        return this.listen(connQual, evd, make);
      } catch (error) {
        if (!DatError.isDatError(error) || error.code !== 'DAT_CONN_QUAL_IN_USE') throw error;
      }
    }
    throw new DatError('DAT_CONN_QUAL_UNAVAILABLE', {
      operation,
      message: `all connection qualifiers from ${FIRST_ANY} to ${LAST_ANY} are taken`,
      value: LAST_ANY,
    });
  }

  /**
   * Listens for one request, for an endpoint that is kept for it (dat_rsp_create): the endpoint is
   * RESERVED, and PASSIVE_CONNECTION_PENDING when the request comes; `cr.accept()` needs no other.
   * @throws DatError DAT_INVALID_STATE unless the endpoint is UNCONNECTED; DAT_CONN_QUAL_IN_USE;
   * DAT_INVALID_HANDLE, DAT_INVALID_PARAMETER
   */
  createRsp(options: RspOptions): Rsp {
    const operation = 'ia.createRsp';
    this.begin(operation, { connQual: options?.connQual, ep: options?.ep });
    checkOptions(operation, 2, options, ['connQual', 'ep', 'evd']);
    checkConnQual(operation, 2, options.connQual);
    const { ep, evd } = options;
    checkHandle(operation, Ep, 'EP', ep, this.self);
    this.checkEvdOption(operation, 'cr', evd);
    ep.hold(operation, 'reserve');
    try {
      return this.listen(options.connQual, evd, (init) => new Rsp(this.self, operation, init, ep));
    } catch (error) {
      ep.hold(operation, 'unreserve');
      throw error;
    }
  }

  /**
   * Listens on an address and port, as a socket does (dat_csp_create); the peer uses
   * `ep.commonConnect`, or `connect` with the port as its connection qualifier.
   * @throws DatError DAT_INVALID_ADDRESS (malformed, or none of the adapter's);
   * DAT_COMM_NOT_SUPPORTED; DAT_CONN_QUAL_IN_USE (the port is taken, on any address);
   * DAT_INVALID_HANDLE, DAT_INVALID_PARAMETER
   */
  createCsp(options: CspOptions): Csp {
    const operation = 'ia.createCsp';
    this.begin(operation, { address: options?.address });
    checkOptions(operation, 2, options, ['address', 'comm', 'evd']);
    const { gids } = this.context.device;
    const { remoteGid, port, comm } = checkCspAddress(operation, options, gids);
    this.checkEvdOption(operation, 'cr', options.evd);
    return this.listen(
      port,
      options.evd,
      (init) => new Csp(this.self, operation, init, remoteGid, comm),
    );
  }

  private listen<T extends ServicePoint>(
    connQual: number,
    given: Evd | undefined,
    make: (init: ServicePointInit) => T,
  ): T {
    const isPrivate = given === undefined;
    const evd = given ?? this.newEvd(REQUESTS_QLEN, EvdFlags.CR);
    try {
      return this.adopt(make({ connQual, evd, isPrivate }));
    } catch (error) {
      if (isPrivate) this.freePrivateEvd(evd);
      throw error;
    }
  }

  /** What makes the endpoints of PspFlags.PROVIDER, tried once. */
  private checkPspOptions(operation: string, options: PspAnyOptions): (() => Ep) | undefined {
    this.checkEvdOption(operation, 'cr', options.evd);
    const { flags = PspFlags.CONSUMER, endpoint } = options;
    checkOneOf(operation, 4, 'flags', flags, Object.values(PspFlags));
    if (flags === PspFlags.CONSUMER) {
      if (endpoint === undefined) return undefined;
      throw invalid(operation, 4, 'flags', flags, 'PspFlags.PROVIDER where `endpoint` is given');
    }
    if (endpoint === undefined) {
      const expected = 'what endpoints are made with, as PspFlags.PROVIDER wants them';
      throw invalid(operation, 4, 'endpoint', endpoint, expected);
    }
    const make = (): Ep => this.makeEndpoint(operation, endpoint, 'TENTATIVE_CONNECTION_PENDING');
    const probe = make();
    probe.shutdown();
    probe.destroy(operation);
    return make;
  }
}
