/** Objects of the DAT API. */
import './event-objects.js';

export {
  type CloseFlag,
  CompletionFlags,
  ConnectFlags,
  flagNames,
  MemPrivileges,
  MemType,
  type MemTypeName,
  PspFlags,
  Qos,
  VaType,
} from './constants.js';
export { type AnswerOptions, Cr, type CrParameters } from './cr.js';
export { Ep } from './ep.js';
export { type EpParameters, type EpReceives, type EpStatus } from './ep-types.js';
export { type EpCounterValues } from './ep-counters.js';
export { type ModifyOptions } from './ep-modify.js';
export { EP_ATTRIBUTE_FIELDS, EP_FIELDS, type Modifiable } from './ep-modify-table.js';
export {
  type EpAttributeOptions,
  type EpAttributes,
  type EpTransportAttributes,
} from './ep-attributes.js';
export {
  type CommonAddress,
  type ConnectOptions,
  type DupConnectOptions,
} from './ep-connect-options.js';
export { EP_STATES, type EpCall, EpState, type EpStateName, type Legality } from './ep-states.js';
export { UdEp } from './ep-ud.js';
export { type UdEpState } from './ep-ud-types.js';
export { type UdAddress, UdAddressHandle } from './ep-ud-address.js';
export { type UdEpAttributes } from './ep-ud-attributes.js';
export { type ResolveOptions } from './ep-ud-resolve.js';
export {
  type ServeOptions,
  type ServiceAnswer,
  type ServiceRequest,
  UdService,
} from './ep-ud-service.js';
export { DatHandle, type HandleType, HandleTypeNumber } from './handle.js';
export { Ia } from './ia.js';
export { type EndpointOptions } from './ia-endpoints.js';
export { type UdEndpointOptions } from './ia-datagrams.js';
export { type XrcDomainOptions } from './ia-xrc.js';
export { type IaAttributes, type IaQuery } from './ia-attributes.js';
export { type EvdStream, type ProviderAttributes } from './provider-attributes.js';
export { type IaCounterValues } from './ia-counters.js';
export { type LmrMemory, type MemTypeHint } from './ia-regions.js';
export { Lmr, type LmrParameters } from './lmr.js';
export { type CreateLmrOptions, type LmrOptions, type MapFileOptions } from './lmr-options.js';
export { type Comm, Csp, type CspOptions, type CspParameters } from './csp.js';
export { Psp, type PspAnyOptions, type PspOptions, type PspParameters } from './psp.js';
export { Rsp, type RspOptions, type RspParameters } from './rsp.js';
export { ServicePoint } from './service-point.js';
export { CR_TRANSITIONS, type CrStateName, SP_TRANSITIONS, type SpStateName } from './sp-states.js';
export { type ManagementAgentOptions } from './ia-mad.js';
export { ManagementAgent } from './mad-agent.js';
export { type ManagementDatagram, type ManagementRequest } from './mad-datagram.js';
export {
  type MadRequestOptions,
  type MadRespondOptions,
  type MadSendOptions,
} from './mad-checks.js';
export { Pz, type PzParameters } from './pz.js';
export { type RmrTriplet } from './rmr-contexts.js';
export { LmrSegment, type RemoteAddress, RemoteSegment, type Segments } from './segment.js';
export { Rmr, type RmrParameters, type RmrScope } from './rmr.js';
export { type RmrBindOptions } from './rmr-options.js';
export { Srq, type SrqParameters } from './srq.js';
export {
  SRQ_STATES,
  type SrqAttributes,
  type SrqOptions,
  SrqState,
  type SrqStateName,
  type SrqStateRule,
} from './srq-attributes.js';
export {
  type XrcAcceptOptions,
  XrcDomain,
  type XrcInitiatorOptions,
  type XrcTargetOptions,
} from './xrc-domain.js';
export { type XrcAttachOptions } from './xrc-direct.js';
export { XrcInitiator } from './xrc-initiator.js';
export { XrcSrq, type XrcSrqOptions } from './xrc-srq.js';
