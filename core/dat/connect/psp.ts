/** Public service point (dat_psp): listens on a connection qualifier. */
import type { Evd } from '../../evd/index.js';
import { PspFlags } from '../common/constants.js';
import type { Ep } from '../endpoint/ep.js';
import type { AdapterState } from '../common/adapter-state.js';
import type { EndpointMaker, EndpointOptions } from '../endpoint/endpoint-maker.js';
import { checkService, type ServiceOptions } from '../endpoint/connect-options.js';
import { ServicePoint, type ServicePointInit } from './service-point.js';
import type { Ia } from '../ia/ia.js';
import { DatError } from '../../errors/index.js';
import { BOOLEAN, optional } from '../../spi/checks/index.js';
import { checkOneOf, checkOptions, checkValue, invalid } from '../../errors/guards.js';
import { requireCapability } from '../common/unsupported.js';
import { listen, listenersOf } from './listen.js';

/** Options of `ia.createPspAny`. */
export interface PspAnyOptions {
  /**
   * Takes the requests; without one, they are offered as `psp.requests$`. Its qlen is the backlog.
   */
  readonly evd?: Evd;
  /**
   * PspFlags.CONSUMER (default): the consumer supplies the endpoint when it accepts. PROVIDER: each
   * request comes with a new one (`cr.ep`), in TENTATIVE_CONNECTION_PENDING.
   */
  readonly flags?: number;
  /** With PspFlags.PROVIDER: options of the endpoints. */
  readonly endpoint?: EndpointOptions;
  /**
   * True: it takes only requests of XRC initiators, for `domain.accept(cr)`. False (default): it
   * takes only those of endpoints. The CM refuses the others, so a peer cannot send a request that
   * the consumer's accept would throw for.
   */
  readonly xrc?: boolean;
}

/** Options of `ia.createPsp`. */
export type PspOptions = PspAnyOptions & ServiceOptions;

/** Result of `psp.query()`. */
export interface PspParameters {
  readonly ia: Ia;
  /** 0 for a service id of no port. */
  readonly connQual: number;
  readonly serviceId: bigint;
  readonly evd: Evd;
  /** A number of PspFlags. */
  readonly flags: number;
  /** True if it takes requests of XRC initiators, in place of those of endpoints. */
  readonly xrc: boolean;
}

/** Made by `ia.createPsp()` or `ia.createPspAny()`. It keeps the process alive while it listens. */
export class Psp extends ServicePoint {
  readonly handleType = 'PSP';

  /** @internal @param endpoint of PspFlags.PROVIDER: makes one for a request */
  constructor(
    core: AdapterState,
    operation: string,
    init: ServicePointInit,
    private readonly makeEndpoint: (() => Ep) | undefined,
  ) {
    super(core, operation, init);
  }

  /** dat_psp_query. */
  query(): PspParameters {
    this.assertLive('psp.query');
    return {
      ia: this.ia,
      connQual: this.connQual,
      serviceId: this.serviceId,
      evd: this.evd,
      flags: this.makeEndpoint === undefined ? PspFlags.CONSUMER : PspFlags.PROVIDER,
      xrc: this.transport === 'xrc',
    };
  }

  protected override endpointFor(): Ep | undefined | 'none left' {
    try {
      return this.makeEndpoint?.();
    } catch (error) {
      const { logger } = this.core.context;
      logger.warn(`psp ${this.id}: no endpoint for a request`, { error: String(error) });
      return 'none left';
    }
  }

  /** Destroys the endpoint, which the provider made. */
  override releaseEndpoint(ep: Ep, by: string): void {
    ep.shutdown();
    ep.destroy(by);
  }
}

/** The ports that need no privilege, as with sockets. */
const FIRST_ANY = 1024;
const LAST_ANY = 65535;
const PSP_ANY = ['evd', 'flags', 'endpoint', 'xrc'];

/** Where `createPspAny` looks next: it cycles, so that a freed port is not reused immediately. */
export class AnyConnQual {
  private following = FIRST_ANY;

  next(): number {
    const connQual = this.following;
    this.following = connQual < LAST_ANY ? connQual + 1 : FIRST_ANY;
    return connQual;
  }
}

export function createPsp(core: AdapterState, endpoints: EndpointMaker, options: PspOptions): Psp {
  const operation = core.begin('ia.createPsp', {
    connQual: options?.connQual,
    serviceId: options?.serviceId,
  });
  checkOptions(operation, options, ['connQual', 'serviceId', ...PSP_ANY]);
  const service = checkService(operation, options);
  const makeEndpoint = checkPspOptions(core, endpoints, operation, options);
  return listen(core, service, options.evd, (init) => {
    return new Psp(core, operation, { ...init, ...transportOf(options) }, makeEndpoint);
  });
}

export function createPspAny(
  core: AdapterState,
  endpoints: EndpointMaker,
  range: AnyConnQual,
  options: PspAnyOptions = {},
): Psp {
  const operation = core.begin('ia.createPspAny');
  checkOptions(operation, options, PSP_ANY);
  const { evd }: PspAnyOptions = options;
  const makeEndpoint = checkPspOptions(core, endpoints, operation, options);
  const make = (init: ServicePointInit): Psp =>
    new Psp(core, operation, { ...init, ...transportOf(options) }, makeEndpoint);
  for (let tries = FIRST_ANY; tries <= LAST_ANY; tries++) {
    const connQual = range.next();
    if (listenersOf(core.context.cm).has(connQual)) continue;
    try {
      return listen(core, connQual, evd, make);
    } catch (error) {
      if (!DatError.isDatError(error) || error.code !== 'DAT_CONN_QUAL_IN_USE') throw error;
    }
  }
  throw new DatError('DAT_CONN_QUAL_UNAVAILABLE', {
    operation,
    message: `all connection qualifiers from ${FIRST_ANY} to ${LAST_ANY} are taken`,
    hint: 'free service points that are not needed',
    value: LAST_ANY,
  });
}

function transportOf({ xrc = false }: PspAnyOptions): Pick<ServicePointInit, 'transport'> {
  return { transport: xrc ? 'xrc' : 'rc' };
}

/** Checks the options. Returns the maker of endpoints for PspFlags.PROVIDER, tried once. */
function checkPspOptions(
  core: AdapterState,
  endpoints: EndpointMaker,
  operation: string,
  options: PspAnyOptions,
): (() => Ep) | undefined {
  core.checkEvdOption(operation, 'cr', options.evd);
  const { flags = PspFlags.CONSUMER, endpoint, xrc } = options;
  checkOneOf(operation, 'flags', flags, Object.values(PspFlags));
  checkValue(operation, 'xrc', xrc, optional(BOOLEAN));
  if (xrc === true) checkXrc(core, operation, flags);
  if (flags === PspFlags.CONSUMER) {
    if (endpoint === undefined) return undefined;
    throw invalid(operation, 'flags', flags, 'PspFlags.PROVIDER where `endpoint` is given');
  }
  if (endpoint === undefined) {
    const expected = 'what endpoints are made with, as PspFlags.PROVIDER wants them';
    throw invalid(operation, 'endpoint', endpoint, expected);
  }
  const make = (): Ep => endpoints.make(operation, endpoint, 'TENTATIVE_CONNECTION_PENDING');
  const probe = make();
  probe.shutdown();
  probe.destroy(operation);
  return make;
}

function checkXrc({ context }: AdapterState, operation: string, flags: number): void {
  requireCapability(operation, context.device, 'xrc', 'XRC');
  if (flags === PspFlags.CONSUMER) return;
  const expected = 'PspFlags.CONSUMER where `xrc` is true: an XRC domain accepts, no endpoint does';
  throw invalid(operation, 'flags', flags, expected);
}
