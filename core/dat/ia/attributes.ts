/** Attributes of an interface adapter, under the names of DAT_IA_ATTR. */
import { type Device, ipFromGid } from '../../spi/index.js';
import type { AdapterServices } from '../common/adapter-state.js';
import type { ProviderAttributes } from './provider-attributes.js';

/** DAT_IA_ATTR; lengths are in bytes. A limit of 0 means that there is no such object. */
export interface IaAttributes {
  /** The device; the name in the registry is the provider attribute `providerName`. */
  readonly adapterName: string;
  /** The vendor's number in hexadecimal. */
  readonly vendorName: string;
  readonly hardwareVersionMajor: number;
  readonly hardwareVersionMinor: number;
  readonly firmwareVersionMajor: number;
  readonly firmwareVersionMinor: number;
  /** In full, as the device reports it. */
  readonly firmwareVersion: string;
  /** IP address in text. */
  readonly iaAddress: string;
  readonly maxEps: number;
  /** In each direction. */
  readonly maxDtoPerEp: number;
  /** RDMA reads and atomics in flight, as their target and as their originator. */
  readonly maxRdmaReadPerEpIn: number;
  readonly maxRdmaReadPerEpOut: number;
  readonly maxEvds: number;
  readonly maxEvdQlen: number;
  readonly maxIovSegmentsPerDto: number;
  readonly maxLmrs: number;
  /** Bytes; limited also by the largest view of memory in this version of Node.js. */
  readonly maxLmrBlockSize: number;
  readonly maxLmrVirtualAddress: bigint;
  readonly maxPzs: number;
  readonly maxMessageSize: number;
  readonly maxRdmaSize: number;
  readonly maxRmrs: number;
  readonly maxRmrTargetAddress: bigint;
  readonly maxSrqs: number;
  readonly maxEpPerSrq: number;
  readonly maxRecvPerSrq: number;
  readonly maxIovSegmentsPerRdmaRead: number;
  readonly maxIovSegmentsPerRdmaWrite: number;
  /** Limits of the whole adapter: every endpoint has its own. */
  readonly maxRdmaReadIn: number;
  readonly maxRdmaReadOut: number;
  /** True if an endpoint gets the depth that it asks for, within the limits. */
  readonly maxRdmaReadPerEpInGuaranteed: boolean;
  readonly maxRdmaReadPerEpOutGuaranteed: boolean;
  /** Zero-based regions. */
  readonly zbSupported: boolean;
  /** Calls of the InfiniBand extensions, and the level of their interface. */
  readonly extensionSupported: 'IB';
  readonly extensionVersion: number;
  /** kDAPL: the key of all physical memory. */
  readonly reservedLmrSupported: false;
  /** Named attributes of the transport. */
  readonly transportAttributes: Readonly<Record<string, string>>;
  readonly vendorAttributes: Readonly<Record<string, string>>;
}

/** dat_ib_extensions.h 2.0.9. */
const IB_EXTENSION_VERSION = 209;

/** Result of `ia.query()`. */
export interface IaQuery {
  readonly ia: IaAttributes;
  readonly provider: ProviderAttributes;
}

export function iaAttributes({ device, maxRegionBytes }: AdapterServices): IaAttributes {
  const a = device.attributes;
  const firmware = /(\d+)(?:\.(\d+))?/.exec(a.firmwareVersion);
  const srqs = device.capabilities.has('shared-receive-queue') ? a.maxSharedReceiveQueues : 0;
  return {
    adapterName: device.name,
    vendorName: `0x${a.vendorId.toString(16)}`,
    hardwareVersionMajor: a.hardwareVersion,
    hardwareVersionMinor: 0,
    firmwareVersionMajor: Number(firmware?.[1] ?? 0),
    firmwareVersionMinor: Number(firmware?.[2] ?? 0),
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
    maxLmrBlockSize: maxRegionBytes,
    maxLmrVirtualAddress: BigInt(a.maxMemoryRegionBytes),
    maxPzs: a.maxProtectionDomains,
    maxMessageSize: a.maxMessageBytes,
    maxRdmaSize: a.maxMessageBytes,
    maxRmrs: device.capabilities.has('memory-window') ? a.maxMemoryWindows : 0,
    maxRmrTargetAddress: BigInt(a.maxMemoryRegionBytes),
    maxSrqs: srqs,
    maxEpPerSrq: srqs === 0 ? 0 : a.maxQueuePairs,
    maxRecvPerSrq: srqs === 0 ? 0 : a.maxSharedReceiveQueueWr,
    maxIovSegmentsPerRdmaRead: a.maxSge,
    maxIovSegmentsPerRdmaWrite: a.maxSge,
    maxRdmaReadIn: a.maxResponderResources * a.maxQueuePairs,
    maxRdmaReadOut: a.maxInitiatorDepth * a.maxQueuePairs,
    maxRdmaReadPerEpInGuaranteed: true,
    maxRdmaReadPerEpOutGuaranteed: true,
    zbSupported: true,
    extensionSupported: 'IB',
    extensionVersion: IB_EXTENSION_VERSION,
    reservedLmrSupported: false,
    transportAttributes: {
      nodeGuid: a.nodeGuid.toString(16).padStart(16, '0'),
      portNumber: String(a.portNumber),
      activeMtuBytes: String(a.activeMtuBytes),
      gids: device.gids.map(ipFromGid).join(','),
    },
    vendorAttributes: { vendorPartId: `0x${a.vendorPartId.toString(16)}` },
  };
}

/** The address that the device sends from by default. */
export function addressOf(device: Device): string {
  const [gid] = device.gids;
  return gid === undefined ? '' : ipFromGid(gid);
}
