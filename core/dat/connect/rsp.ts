/** Reserved service point (dat_rsp): one request, for one endpoint that is reserved for it. */
import type { Evd } from '../../evd/index.js';
import { Ep } from '../endpoint/ep.js';
import type { AdapterState } from '../common/adapter-state.js';
import { checkService, type ServiceOptions } from '../endpoint/connect-options.js';
import { ServicePoint, type ServicePointInit } from './service-point.js';
import type { Ia } from '../ia/ia.js';
import { checkOptions } from '../../errors/guards.js';
import { checkHandle } from '../common/handle.js';
import { listen } from './listen.js';

/** Options of `ia.createRsp`. */
export type RspOptions = ServiceOptions & {
  /** UNCONNECTED; RESERVED from then on. */
  readonly ep: Ep;
  /** Takes the request; without one, it is offered as `rsp.requests$`. */
  readonly evd?: Evd;
};

/** Result of `rsp.query()`. */
export interface RspParameters {
  readonly ia: Ia;
  /** 0 for a service id of no port. */
  readonly connQual: number;
  readonly serviceId: bigint;
  readonly ep: Ep;
  readonly evd: Evd;
}

/**
 * Made by `ia.createRsp()`. Ends with its one request, as in DAT. dapl requires `dat_rsp_free`
 * nevertheless, so `free` is legal then, and does nothing.
 */
export class Rsp extends ServicePoint {
  readonly handleType = 'RSP';
  private spent = false;

  /** @internal */
  constructor(
    core: AdapterState,
    operation: string,
    init: ServicePointInit,
    readonly ep: Ep,
  ) {
    super(core, operation, init);
  }

  /** dat_rsp_query. */
  query(): RspParameters {
    this.assertLive('rsp.query');
    const { ia, connQual, serviceId, ep, evd } = this;
    return { ia, connQual, serviceId, ep, evd };
  }

  /**
   * Stops listening (dat_rsp_free); the endpoint is UNCONNECTED again. Does nothing once the
   * request has come.
   * @throws DatError DAT_INVALID_HANDLE when it has been freed before its request came
   */
  override free(): void {
    if (!this.spent) super.free();
  }

  protected override endpointFor(): Ep {
    return this.ep;
  }

  protected override onHandedOut(): void {
    this.spent = true;
    this.ep.record.connection.hold('request');
    this.stop('one-shot', 'its request');
  }

  override releaseEndpoint(ep: Ep): void {
    // Without room for the event it is still RESERVED, and the service point keeps listening.
    if (this.spent) ep.record.connection.hold('reject');
  }

  protected override stop(trigger: 'free' | 'one-shot', by: string): void {
    if (trigger === 'free') this.ep.record.connection.hold('unreserve');
    super.stop(trigger, by);
  }
}

export function createRsp(core: AdapterState, options: RspOptions): Rsp {
  const operation = core.begin('ia.createRsp', {
    connQual: options?.connQual,
    serviceId: options?.serviceId,
    ep: options?.ep,
  });
  checkOptions(operation, options, ['connQual', 'serviceId', 'ep', 'evd']);
  const service = checkService(operation, options);
  const { ep, evd } = options;
  checkHandle(operation, Ep, 'EP', ep, core);
  core.checkEvdOption(operation, 'cr', evd);
  const { record } = ep;
  record.checkLegal(operation, 'reserve');
  record.connection.hold('reserve');
  try {
    return listen(core, service, evd, (init) => new Rsp(core, operation, init, ep));
  } catch (error) {
    record.connection.hold('unreserve');
    throw error;
  }
}
