/** Objects of the DAT API. */
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
} from './common/constants.js';
export { type AnswerOptions, Cr, type CrParameters } from './connect/cr.js';
export { Ep } from './endpoint/ep.js';
export { type EpParameters, type EpReceives, type EpStatus } from './endpoint/types.js';
export { type EpCounterValues } from './work/counters.js';
export { type ModifyOptions } from './endpoint/modify.js';
export { EP_FIELDS, type Modifiable } from './endpoint/modify.js';
export {
  type EpAttributeOptions,
  type EpAttributes,
  type EpTransportAttributes,
} from './endpoint/attributes.js';
export {
  type CommonAddress,
  type ConnectOptions,
  type DupConnectOptions,
} from './endpoint/connect-options.js';
export { EP_STATES, type EpCall, EpState, type EpStateName } from './endpoint/states.js';
export { UdEp } from './datagram/endpoint.js';
export { type UdEpState } from './datagram/endpoint.js';
export { type UdAddress, UdAddressHandle } from './datagram/address.js';
export { type UdEpAttributes } from './datagram/attributes.js';
export { type ResolveOptions } from './datagram/resolve.js';
export {
  type ServeOptions,
  type ServiceAnswer,
  type ServiceRequest,
  UdService,
} from './datagram/service.js';
export { DatHandle, type HandleType, HandleTypeNumber } from './common/handle.js';
export { Ia } from './ia/ia.js';
export { type EndpointOptions } from './endpoint/endpoint-maker.js';
export { type UdEndpointOptions } from './datagram/endpoint.js';
export { type XrcDomainOptions } from './xrc/domain.js';
export { type IaAttributes, type IaQuery } from './ia/attributes.js';
export { type EvdStream, type ProviderAttributes } from './ia/provider-attributes.js';
export { type IaCounterValues } from './common/adapter-state.js';
export { type LmrMemory } from './memory/create-lmr.js';
export { type MemTypeHint } from './memory/memory-hints.js';
export { Lmr, type LmrParameters } from './memory/lmr.js';
export {
  type AllocateOptions,
  type CreateLmrOptions,
  type LmrOptions,
  type MapFileOptions,
} from './memory/lmr-options.js';
export { type Comm, Csp, type CspOptions, type CspParameters } from './connect/csp.js';
export { Psp, type PspAnyOptions, type PspOptions, type PspParameters } from './connect/psp.js';
export { Rsp, type RspOptions, type RspParameters } from './connect/rsp.js';
export { ServicePoint } from './connect/service-point.js';
export { type CrStateName, type SpStateName } from './connect/sp-states.js';
export { type IaMad, type ManagementAgentOptions } from './mad/calls.js';
export { ManagementAgent } from './mad/agent.js';
export { type ManagementDatagram, type ManagementRequest } from './mad/datagram.js';
export {
  type MadRequestOptions,
  type MadRespondOptions,
  type MadSendOptions,
} from './mad/checks.js';
export { Pz, type PzParameters } from './memory/pz.js';
export { type RmrTriplet } from './memory/rmr-contexts.js';
export { LmrSegment, type RemoteAddress, RemoteSegment, type Segments } from './memory/segment.js';
export { Rmr, type RmrParameters, type RmrScope } from './window/rmr.js';
export { type RmrBindOptions } from './window/rmr-options.js';
export { Srq, type SrqParameters } from './srq/srq.js';
export {
  type SrqAttributes,
  type SrqOptions,
  SrqState,
  type SrqStateName,
} from './srq/attributes.js';
export {
  type XrcAcceptOptions,
  XrcDomain,
  type XrcInitiatorOptions,
  type XrcTargetOptions,
} from './xrc/domain.js';
export { type XrcAttachOptions } from './xrc/direct.js';
export { XrcInitiator } from './xrc/initiator.js';
export { XrcSrq, type XrcSrqOptions } from './xrc/srq.js';
