/** The calls of an interface adapter that make endpoints. */
import { type Evd, EvdFlags } from '../evd/index.js';
import { Ep } from './ep.js';
import { type EpAttributeOptions, epAttributes } from './ep-attributes.js';
import { checkOptions } from './guards.js';
import { checkHandle } from './handle.js';
import { IaMemory } from './ia-memory.js';
import { Pz } from './pz.js';

/** What `ia.createEndpoint` takes. An EVD that is not given is private: see `Ep.completions$`. */
export interface EndpointOptions {
  readonly pz: Pz;
  /** Takes completions of receives. */
  readonly recvEvd?: Evd;
  /** Takes completions of requests; may be the same. */
  readonly requestEvd?: Evd;
  /** Takes connection events; may be the same. */
  readonly connectEvd?: Evd;
  readonly attributes?: EpAttributeOptions;
}

export abstract class IaEndpoints extends IaMemory {
  /**
   * Makes an endpoint (dat_ep_create), UNCONNECTED.
   * @throws DatError DAT_INVALID_HANDLE, DAT_INVALID_PARAMETER (attributes),
   * DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_TEP
   */
  createEndpoint(options: EndpointOptions): Ep {
    const operation = 'ia.createEndpoint';
    this.begin(operation);
    checkOptions(operation, 1, options, EP_OPTIONS);
    checkHandle(operation, Pz, 'PZ', options.pz, this.self);
    const { recvEvd, requestEvd, connectEvd } = options;
    this.checkEvdOption(operation, 'recv', recvEvd);
    this.checkEvdOption(operation, 'request', requestEvd);
    this.checkEvdOption(operation, 'connect', connectEvd);
    const attributes = epAttributes(
      operation,
      options.attributes ?? {},
      this.context.device.attributes,
    );
    const privateEvds: Evd[] = [];
    const makePrivate = (qlen: number, streams: number): Evd => {
      const evd = this.newEvd(qlen, streams);
      privateEvds.push(evd);
      return evd;
    };
    const dtos = attributes.maxRecvDtos + attributes.maxRequestDtos;
    const ownDto = recvEvd && requestEvd ? undefined : makePrivate(dtos, EvdFlags.DTO);
    const connect = connectEvd ?? makePrivate(CONNECTION_QLEN, EvdFlags.CONNECTION);
    try {
      return this.adopt(
        new Ep(this.self, {
          pz: options.pz,
          recvEvd: recvEvd ?? (ownDto as Evd),
          requestEvd: requestEvd ?? (ownDto as Evd),
          connectEvd: connect,
          privateEvds,
          attributes,
        }),
      );
    } catch (error) {
      for (const evd of privateEvds) this.freePrivateEvd(evd);
      throw error;
    }
  }
}

const CONNECTION_QLEN = 16;
const EP_OPTIONS = ['pz', 'recvEvd', 'requestEvd', 'connectEvd', 'attributes'];
