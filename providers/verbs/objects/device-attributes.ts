/** Translates the verbs attributes of a device and its port into those of the SPI. */
import {
  type DeviceAttributes,
  type DeviceCapability,
  PATH_MTU_BYTES,
} from '../../../core/spi/index.js';
import type { NativeDeviceAttributes, NativePortAttributes } from '../addon/native-addon.js';

/** `ibv_device_cap_flags`. */
const MEM_WINDOW = 1 << 17;
const XRC = 1 << 20;
const MEM_MGT_EXTENSIONS = 1 << 21;
const MEM_WINDOW_TYPE_2B = 1 << 24;

/**
 * There is no attribute for it: creating a queue pair with more fails, and says so. Every adapter
 * that we know of takes this much.
 */
const MAX_INLINE_BYTES = 64;

/** `enum ibv_port_state`. */
const PORT_ACTIVE = 4;

/** Segments that an entry of the rings can count. */
const MAX_RING_SGE = 255;

export function deviceAttributesOf(
  device: NativeDeviceAttributes,
  port: NativePortAttributes,
  portNumber: number,
): DeviceAttributes {
  return {
    nodeGuid: device.nodeGuid,
    vendorId: device.vendorId,
    vendorPartId: device.vendorPartId,
    hardwareVersion: device.hardwareVersion,
    firmwareVersion: device.firmwareVersion,
    portNumber,
    activeMtuBytes: PATH_MTU_BYTES[port.activeMtu] ?? 256,
    maxMessageBytes: port.maxMessageBytes,
    maxQueuePairs: device.maxQp,
    maxQueuePairWr: device.maxQpWr,
    maxSge: Math.min(device.maxSge, MAX_RING_SGE),
    maxInlineBytes: MAX_INLINE_BYTES,
    maxCompletionQueues: device.maxCq,
    maxCompletionQueueEntries: device.maxCqe,
    maxMemoryRegions: device.maxMr,
    maxMemoryRegionBytes: Number(device.maxMrBytes),
    maxMemoryWindows: device.maxMw,
    maxProtectionDomains: device.maxPd,
    maxSharedReceiveQueues: device.maxSrq,
    maxSharedReceiveQueueWr: device.maxSrqWr,
    maxResponderResources: device.maxQpRdAtom,
    maxInitiatorDepth: device.maxQpInitRdAtom,
    localAckDelay: device.localAckDelay,
  };
}

/** Capabilities that a device may have; `capabilitiesOf` says which of them it has. */
export const VERBS_CAPABILITIES = [
  'rc',
  'uc',
  'ud',
  'atomic',
  'shared-receive-queue',
  'multicast',
  'memory-window',
  'send-with-invalidate',
  'xrc',
] as const satisfies readonly DeviceCapability[];

export function capabilitiesOf(device: NativeDeviceAttributes): ReadonlySet<DeviceCapability> {
  const has = (flags: number): boolean => (device.capabilityFlags & flags) !== 0;
  const capabilities = new Set<DeviceCapability>(['rc', 'uc', 'ud']);
  if (device.atomicCapability !== 0) capabilities.add('atomic');
  if (device.maxSrq > 0) capabilities.add('shared-receive-queue');
  if (device.maxMulticastGroups > 0) capabilities.add('multicast');
  if (device.maxMw > 0 && has(MEM_WINDOW | MEM_WINDOW_TYPE_2B)) capabilities.add('memory-window');
  if (has(MEM_MGT_EXTENSIONS | MEM_WINDOW_TYPE_2B)) capabilities.add('send-with-invalidate');
  if (has(XRC)) capabilities.add('xrc').add('xrc-between-processes');
  return capabilities;
}

/** A device that does not answer is none that is waited for. */
export function isPortActive(port: NativePortAttributes | number): boolean {
  return typeof port === 'number' || port.state === PORT_ACTIVE;
}
