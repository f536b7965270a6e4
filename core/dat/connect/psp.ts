/** Public service point (dat_psp): listens on a connection qualifier. */
import type { Evd } from '../../evd/index.js';
import { PspFlags } from '../common/constants.js';
import type { Ep } from '../endpoint/ep.js';
import type { IaCore } from '../common/adapter-state.js';
import type { EndpointOptions } from '../endpoint/endpoint-maker.js';
import type { ServiceOptions } from '../endpoint/connect-options.js';
import { ServicePoint, type ServicePointInit } from './service-point.js';
import type { Ia } from '../ia/ia.js';

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
    core: IaCore,
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
