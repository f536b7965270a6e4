/** Attributes of an interface adapter and its provider, under DAT's names (DAT facts 5.3, 5.4). */
import { CmPrivateData, type Device, ipFromGid } from '../spi/index.js';
import { CompletionFlags, Qos } from './constants.js';

/** DAT_IA_ATTR; lengths are in bytes. */
export interface IaAttributes {
  readonly adapterName: string;
  readonly vendorName: string;
  readonly hardwareVersionMajor: number;
  readonly hardwareVersionMinor: number;
  readonly firmwareVersion: string;
  readonly iaAddress: string;
  readonly maxEps: number;
  readonly maxDtoPerEp: number;
  readonly maxRdmaReadPerEpIn: number;
  readonly maxRdmaReadPerEpOut: number;
  readonly maxEvds: number;
  readonly maxEvdQlen: number;
  readonly maxIovSegmentsPerDto: number;
  readonly maxLmrs: number;
  readonly maxLmrBlockSize: number;
  readonly maxLmrVirtualAddress: bigint;
  readonly maxPzs: number;
  readonly maxMessageSize: number;
  readonly maxRdmaSize: number;
  readonly maxRmrs: number;
  readonly maxRmrTargetAddress: bigint;
  readonly maxSrqs: number;
  readonly maxRecvPerSrq: number;
  readonly maxIovSegmentsPerRdmaRead: number;
  readonly maxIovSegmentsPerRdmaWrite: number;
  readonly maxRdmaReadIn: number;
  readonly maxRdmaReadOut: number;
  readonly maxRdmaReadPerEpInGuaranteed: boolean;
  readonly maxRdmaReadPerEpOutGuaranteed: boolean;
  readonly zbSupported: boolean;
}

/** DAT_PROVIDER_ATTR. */
export interface ProviderAttributes {
  readonly providerName: string;
  readonly providerVersion: string;
  readonly datVersionMajor: 2;
  readonly datVersionMinor: 0;
  readonly lmrMemTypesSupported: readonly string[];
  readonly iovOwnershipOnReturn: 'CONSUMER';
  /** Bit set of Qos; BEST_EFFORT is 0. */
  readonly datQosSupported: number;
  /** Bit set of CompletionFlags. */
  readonly completionFlagsSupported: number;
  /** Objects belong to the thread that made them. */
  readonly isThreadSafe: false;
  /** Bytes of private data that a connect takes. */
  readonly maxPrivateDataSize: number;
  readonly supportsMultipath: false;
  readonly epCreator: 'NEVER';
  readonly pzSupport: 'UNIQUE';
  /** Bytes. */
  readonly optimalBufferAlignment: number;
  readonly srqSupported: boolean;
  readonly lmrSyncReq: false;
  /** Posts never block. */
  readonly dtoAsyncReturnGuaranteed: true;
  readonly rdmaWriteForRdmaReadReq: false;
  /** Named attributes of the IB providers (DAT facts 5.5). */
  readonly providerSpecific: Readonly<Record<string, string>>;
}

/** What `ia.query()` answers. */
export interface IaQuery {
  readonly ia: IaAttributes;
  readonly provider: ProviderAttributes;
}

export function iaAttributes(device: Device): IaAttributes {
  const a = device.attributes;
  return {
    adapterName: device.name,
    vendorName: `0x${a.vendorId.toString(16)}`,
    hardwareVersionMajor: a.hardwareVersion,
    hardwareVersionMinor: 0,
    firmwareVersion: a.firmwareVersion,
    iaAddress: addressOf(device),
    maxEps: a.maxQueuePairs,
    // One entry of each queue is ours: the marker that ends it.
    maxDtoPerEp: a.maxQueuePairWr - 1,
    maxRdmaReadPerEpIn: a.maxResponderResources,
    maxRdmaReadPerEpOut: a.maxInitiatorDepth,
    maxEvds: a.maxCompletionQueues,
    maxEvdQlen: a.maxCompletionQueueEntries,
    maxIovSegmentsPerDto: a.maxSge,
    maxLmrs: a.maxMemoryRegions,
    maxLmrBlockSize: a.maxMemoryRegionBytes,
    maxLmrVirtualAddress: BigInt(a.maxMemoryRegionBytes),
    maxPzs: a.maxProtectionDomains,
    maxMessageSize: a.maxMessageBytes,
    maxRdmaSize: a.maxMessageBytes,
    maxRmrs: a.maxMemoryWindows,
    maxRmrTargetAddress: BigInt(a.maxMemoryRegionBytes),
    maxSrqs: a.maxSharedReceiveQueues,
    maxRecvPerSrq: a.maxSharedReceiveQueueWr,
    maxIovSegmentsPerRdmaRead: a.maxSge,
    maxIovSegmentsPerRdmaWrite: a.maxSge,
    maxRdmaReadIn: a.maxResponderResources,
    maxRdmaReadOut: a.maxInitiatorDepth,
    maxRdmaReadPerEpInGuaranteed: true,
    maxRdmaReadPerEpOutGuaranteed: true,
    zbSupported: false,
  };
}

export function providerAttributes(device: Device, providerName: string): ProviderAttributes {
  const { SUPPRESS, SOLICITED_WAIT, BARRIER_FENCE, EVD_THRESHOLD } = CompletionFlags;
  return {
    providerName,
    providerVersion: '2.0',
    datVersionMajor: 2,
    datVersionMinor: 0,
    lmrMemTypesSupported: ['VIRTUAL'],
    iovOwnershipOnReturn: 'CONSUMER',
    datQosSupported: Qos.BEST_EFFORT,
    completionFlagsSupported: SUPPRESS | SOLICITED_WAIT | BARRIER_FENCE | EVD_THRESHOLD,
    isThreadSafe: false,
    maxPrivateDataSize: CmPrivateData.REQ,
    supportsMultipath: false,
    epCreator: 'NEVER',
    pzSupport: 'UNIQUE',
    optimalBufferAlignment: 256,
    srqSupported: device.capabilities.has('shared-receive-queue'),
    lmrSyncReq: false,
    dtoAsyncReturnGuaranteed: true,
    rdmaWriteForRdmaReadReq: false,
    providerSpecific: {
      DAT_IB_PROVIDER_NAME: providerName,
      DAT_IB_DEVICE_NAME: device.name,
      DAT_IB_CONNECTIVITY_MODE: 'DIRECT',
      DAT_IB_RDMA_READ: 'TRUE',
      DAT_IB_NODE_GUID: device.attributes.nodeGuid.toString(16).padStart(16, '0'),
      DAT_IB_GID: addressOf(device),
      DAT_IB_TRANSPORT_MTU: String(device.attributes.activeMtuBytes),
      DAT_IB_PORT_NUMBER: String(device.attributes.portNumber),
    },
  };
}

/** The address that the device sends from by default. */
export function addressOf(device: Device): string {
  const [gid] = device.gids;
  return gid === undefined ? '' : ipFromGid(gid);
}
