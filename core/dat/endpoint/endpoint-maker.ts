/** Creates endpoints. */
import { type Evd, EvdFlags } from '../../evd/index.js';
import { Ep } from './ep.js';
import { checkCompletionModel, type EpAttributeOptions, epAttributes } from './attributes.js';
import type { EpInitialState } from './states.js';
import type { EpInit } from './types.js';
import { checkOptions } from '../../errors/guards.js';
import { checkHandle } from '../common/handle.js';
import type { AdapterState } from '../common/adapter-state.js';
import { Pz } from '../memory/pz.js';
import { Srq } from '../srq/srq.js';

/**
 * Options of `ia.createEndpoint`. A stream without an EVD goes to a private one, which is offered
 * as `Ep.completions$` (receives, requests or both) and `Ep.connection$`.
 */
export interface EndpointOptions {
  readonly pz: Pz;
  /** Takes completions of receives. */
  readonly recvEvd?: Evd;
  /** Takes completions of requests; may be the same. */
  readonly requestEvd?: Evd;
  /** Takes connection events; may be the same. */
  readonly connectEvd?: Evd;
  readonly attributes?: EpAttributeOptions;
  /**
   * Queue of its receives for the endpoint's whole lifetime (dat_ep_create_with_srq); it may be of
   * another zone.
   */
  readonly srq?: Srq;
}

/** Makes the endpoints of an interface adapter. */
export class EndpointMaker {
  private latestInit: EpInit | undefined = undefined;

  constructor(private readonly core: AdapterState) {}

  /** `ia.createEndpoint`: UNCONNECTED. */
  create(options: EndpointOptions): Ep {
    const operation = this.core.begin('ia.createEndpoint');
    return this.make(operation, options, 'UNCONNECTED');
  }

  /**
   * Also for endpoints that the provider makes for a request: TENTATIVE_CONNECTION_PENDING.
   * @throws DatError as `ia.createEndpoint`
   */
  make(operation: string, options: EndpointOptions, initialState: EpInitialState): Ep {
    return this.build(operation, options, initialState, (init) => new Ep(this.core, init));
  }

  /** @param create constructs the kind of endpoint; @throws DatError as `ia.createEndpoint` */
  build<T extends Ep>(
    operation: string,
    options: EndpointOptions,
    initialState: EpInitialState,
    create: (init: EpInit) => T,
  ): T {
    checkOptions(operation, options, EP_OPTIONS, 'pz');
    checkHandle(operation, Pz, 'PZ', options.pz, this.core);
    const { srq, recvEvd, requestEvd, connectEvd } = options;
    if (srq !== undefined) {
      checkHandle(operation, Srq, 'SRQ', srq, this.core);
      srq.assertUsable(operation);
    }
    this.core.checkEvdOption(operation, 'recv', recvEvd);
    this.core.checkEvdOption(operation, 'request', requestEvd);
    this.core.checkEvdOption(operation, 'connect', connectEvd);
    const attributes = epAttributes(
      operation,
      options.attributes ?? {},
      this.core.context.device.attributes,
    );
    checkCompletionModel(operation, attributes, recvEvd, requestEvd);
    const recvDtos = srq?.maxRecvDtos ?? attributes.maxRecvDtos;
    const dtos = recvDtos + attributes.maxRequestDtos;
    const ownDto = recvEvd && requestEvd ? undefined : this.core.newEvd(dtos, DTO_STREAMS);
    const ownConnect = connectEvd
      ? undefined
      : this.core.newEvd(CONNECTION_QLEN, EvdFlags.CONNECTION);
    const privateEvds = [ownDto, ownConnect].filter((evd) => evd !== undefined);
    const init = this.shared({
      pz: options.pz,
      recvEvd: recvEvd ?? (ownDto as Evd),
      requestEvd: requestEvd ?? (ownDto as Evd),
      connectEvd: connectEvd ?? (ownConnect as Evd),
      privateEvds: privateEvds.length === 0 ? NO_EVDS : privateEvds,
      attributes,
      initialState,
      srq,
    });
    // If creation fails, the constructor has freed the private event dispatchers.
    return this.core.adopt(create(init));
  }

  /** Frozen; successive endpoints that are alike share one. */
  private shared(init: EpInit): EpInit {
    if (init.privateEvds.length > 0) return init;
    const { latestInit: latest } = this;
    const names = Object.keys(init) as (keyof EpInit)[];
    if (latest !== undefined && names.every((name) => latest[name] === init[name])) return latest;
    return (this.latestInit = Object.freeze(init));
  }
}

/** Most endpoints have no private ones. */
const NO_EVDS: readonly Evd[] = [];
const CONNECTION_QLEN = 16;
const DTO_STREAMS = EvdFlags.DTO | EvdFlags.RMR_BIND;
const EP_OPTIONS = ['pz', 'recvEvd', 'requestEvd', 'connectEvd', 'attributes', 'srq'];
