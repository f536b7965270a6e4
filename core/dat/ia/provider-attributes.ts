/**
 * Attributes of a provider, under the names of DAT_PROVIDER_ATTR. Those that differ between devices
 * are derived from the device's capabilities. The rest are core's own, the same for every device.
 */
import { EVD_STREAM_MERGING, type EvdFlags, type UpcallPolicy } from '../../evd/index.js';
import { CmPrivateData, type Device, type DeviceCapability, ipFromGid } from '../../spi/index.js';
import { CompletionFlags, type MemTypeName, Qos } from '../common/constants.js';

/** The streams that feed an EVD, in DAT's order. */
export const EVD_STREAMS = [
  'SOFTWARE',
  'CR',
  'DTO',
  'CONNECTION',
  'RMR_BIND',
  'ASYNC',
] as const satisfies readonly (keyof typeof EvdFlags)[];
export type EvdStream = (typeof EVD_STREAMS)[number];

/** DAT_PROVIDER_ATTR. */
export interface ProviderAttributes {
  /** The adapter's name in the registry. */
  readonly providerName: string;
  readonly providerVersionMajor: number;
  readonly providerVersionMinor: number;
  readonly providerVersion: string;
  /** The implemented API. */
  readonly datVersionMajor: 2;
  readonly datVersionMinor: 0;
  readonly lmrMemTypesSupported: readonly MemTypeName[];
  /** The consumer may reuse the list of segments when a post returns. */
  readonly iovOwnershipOnReturn: 'CONSUMER';
  /** Bit set of Qos; BEST_EFFORT is 0. */
  readonly datQosSupported: number;
  /** Bit set of CompletionFlags. */
  readonly completionFlagsSupported: number;
  /** Objects belong to the thread that created them. */
  readonly isThreadSafe: false;
  /** Bytes of private data that a connect takes. */
  readonly maxPrivateDataSize: number;
  readonly supportsMultipath: false;
  /** The provider makes endpoints for the requests of a service point if asked to. */
  readonly epCreator: 'IFASKED';
  readonly pzSupport: 'UNIQUE';
  /** Bytes. */
  readonly optimalBufferAlignment: number;
  /** Pairs of streams that may feed one EVD. */
  readonly evdStreamMergingSupported: Readonly<
    Record<EvdStream, Readonly<Record<EvdStream, boolean>>>
  >;
  readonly srqSupported: boolean;
  /** Watermarks of a shared receive queue: its low one. */
  readonly srqWatermarksSupported: number;
  /** Queue and endpoint may belong to different zones. */
  readonly srqEpPzDifferenceSupported: boolean;
  /** Counts that `srq.query()` gives. */
  readonly srqInfoSupported: {
    readonly availableDtos: boolean;
    readonly outstandingDtos: boolean;
  };
  /** Counts that `ep.recvQuery()` gives. */
  readonly epRecvInfoSupported: {
    readonly buffersAllocated: boolean;
    readonly bufferSpan: boolean;
  };
  /** Memory is coherent: the sync calls have nothing to do. */
  readonly lmrSyncReq: false;
  /** Posts never block. */
  readonly dtoAsyncReturnGuaranteed: true;
  /** The sink of a read needs no remote write privilege. */
  readonly rdmaWriteForRdmaReadReq: false;
  /** Reading into a region does not open it to peers. */
  readonly rdmaReadLmrRmrContextExposure: false;
  readonly rmrScopeSupported: readonly ('EP' | 'PZ' | 'ANY')[];
  /** No call may be made from a signal or interrupt handler: there is none in JavaScript. */
  readonly isSignalSafe: false;
  readonly isInterruptSafe: false;
  readonly haSupported: false;
  readonly haLoadBalancing: 'NONE';
  /** kDAPL: the most permissive policy. */
  readonly upcallPolicy: UpcallPolicy;
  /** kDAPL: fast registration through the send queue. */
  readonly fmrSupported: false;
  /** Named attributes of the IB providers. */
  readonly providerSpecific: Readonly<Record<string, string>>;
}

const { SUPPRESS, SOLICITED_WAIT, UNSIGNALLED, BARRIER_FENCE, EVD_THRESHOLD } = CompletionFlags;

const COMPLETION_FLAGS = SUPPRESS | SOLICITED_WAIT | UNSIGNALLED | BARRIER_FENCE | EVD_THRESHOLD;

export function providerAttributes(device: Device, providerName: string): ProviderAttributes {
  const { capabilities } = device;
  const srq = capabilities.has('shared-receive-queue');
  return {
    providerName,
    providerVersionMajor: 2,
    providerVersionMinor: 0,
    providerVersion: '2.0',
    datVersionMajor: 2,
    datVersionMinor: 0,
    lmrMemTypesSupported: memTypes(device),
    iovOwnershipOnReturn: 'CONSUMER',
    datQosSupported: Qos.BEST_EFFORT,
    completionFlagsSupported: COMPLETION_FLAGS,
    isThreadSafe: false,
    maxPrivateDataSize: CmPrivateData.REQ,
    supportsMultipath: false,
    epCreator: 'IFASKED',
    pzSupport: 'UNIQUE',
    optimalBufferAlignment: 256,
    evdStreamMergingSupported: mergingTable(),
    srqSupported: srq,
    srqWatermarksSupported: srq ? 1 : 0,
    srqEpPzDifferenceSupported: srq,
    srqInfoSupported: { availableDtos: srq, outstandingDtos: srq },
    epRecvInfoSupported: { buffersAllocated: true, bufferSpan: true },
    lmrSyncReq: false,
    dtoAsyncReturnGuaranteed: true,
    rdmaWriteForRdmaReadReq: false,
    rdmaReadLmrRmrContextExposure: false,
    rmrScopeSupported: capabilities.has('memory-window') ? ['EP', 'PZ'] : [],
    isSignalSafe: false,
    isInterruptSafe: false,
    haSupported: false,
    haLoadBalancing: 'NONE',
    upcallPolicy: 'MANY',
    fmrSupported: false,
    providerSpecific: providerSpecific(device, providerName),
  };
}

function memTypes(device: Device): MemTypeName[] {
  const always: MemTypeName[] = ['VIRTUAL', 'LMR', 'SHARED_VIRTUAL'];
  return device.mapFile === undefined ? always : [...always, 'FILE'];
}

/** The table of stream merging, with names in place of indices. */
function mergingTable(): ProviderAttributes['evdStreamMergingSupported'] {
  const row = (cells: readonly boolean[]): [EvdStream, boolean][] =>
    EVD_STREAMS.map((stream, i) => [stream, cells[i] === true]);
  return Object.fromEntries(
    EVD_STREAMS.map((stream, i) => [stream, Object.fromEntries(row(EVD_STREAM_MERGING[i] ?? []))]),
  ) as ProviderAttributes['evdStreamMergingSupported'];
}

/** Provider-specific named attributes (DAT_NAMED_ATTR): strings; absent ones are left out. */
function providerSpecific(device: Device, providerName: string): Record<string, string> {
  const { nodeGuid, activeMtuBytes, portNumber, maxInitiatorDepth } = device.attributes;
  const [gid] = device.gids;
  const can = (capability: DeviceCapability): string =>
    device.capabilities.has(capability) ? 'TRUE' : 'FALSE';
  return {
    DAT_IB_PROVIDER_NAME: providerName,
    DAT_IB_DEVICE_NAME: device.name,
    DAT_IB_CONNECTIVITY_MODE: 'DIRECT',
    DAT_IB_RDMA_READ: maxInitiatorDepth > 0 ? 'TRUE' : 'FALSE',
    DAT_IB_NODE_GUID: nodeGuid.toString(16).padStart(16, '0'),
    DAT_IB_GID: gid === undefined ? '' : ipFromGid(gid),
    DAT_IB_TRANSPORT_MTU: String(activeMtuBytes),
    DAT_IB_PORT_NUMBER: String(portNumber),
    DAT_EXTENSION_INTERFACE: 'TRUE',
    DAT_IB_IMMED_DATA: 'TRUE',
    DAT_IB_FETCH_AND_ADD: can('atomic'),
    DAT_IB_CMP_AND_SWAP: can('atomic'),
    DAT_IB_UD: can('ud'),
    DAT_COUNTERS: 'TRUE',
  };
}
