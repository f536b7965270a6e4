/**
 * dapl: RDMA for Node.js, the DAT way. The consumer API: open an interface adapter with `openIa`,
 * make objects from it, post, and take events.
 */
import 'reflect-metadata';

export {
  type AnswerOptions,
  type CloseFlag,
  CompletionFlags,
  ConnectFlags,
  type ConnectOptions,
  Cr,
  type CrParameters,
  DatHandle,
  type EndpointOptions,
  Ep,
  type EpAttributeOptions,
  type EpAttributes,
  type EpCall,
  type EpParameters,
  EP_STATES,
  EpState,
  type EpStateName,
  type EpStatus,
  type EpTransportAttributes,
  flagNames,
  type HandleType,
  Ia,
  type IaAttributes,
  type Legality,
  Lmr,
  type LmrOptions,
  LmrSegment,
  MemPrivileges,
  type ProviderAttributes,
  Psp,
  PspFlags,
  type PspOptions,
  Pz,
  Qos,
  type RemoteAddress,
  RemoteSegment,
  type ResolveOptions,
  type ServeOptions,
  type ServiceAnswer,
  type ServiceRequest,
  type UdAddress,
  UdAddressHandle,
  type UdEndpointOptions,
  UdEp,
  type UdEpAttributes,
  type UdEpState,
  UdService,
} from './dat/index.js';
export {
  DAT_SUBTYPES,
  DAT_TYPES,
  DatClass,
  DatError,
  type DatErrorOptions,
  type DatSubtype,
  type DatType,
  decodeReturnCode,
  describeCode,
  returnCodeOf,
} from './errors/index.js';
export * from './evd/public.js';
export { createLogger, fromWinston, type LoggerOptions, type LogLevel } from './log/index.js';
export {
  createRegistry,
  type ModuleKind,
  openIa,
  type OpenIaOptions,
  Registry,
  type RegistryOptions,
} from './registry/index.js';
export { nameOf } from './spi/ib.js';
export type { EventStream, Observable } from './stream/index.js';
