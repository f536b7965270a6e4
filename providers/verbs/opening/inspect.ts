/**
 * Reports the devices that verbs can use on this machine: for `dapl info`, and for programs that
 * choose a provider. Nothing stays open.
 */
import { consumerCall } from '../../../core/spi/errors/consumer-errors.js';
import { type DeviceAttributes, type DeviceCapability, SpiError } from '../../../core/spi/index.js';
import { chooseDevice, type DeviceChoice } from './choose-device.js';
import { capabilitiesOf, deviceAttributesOf } from '../objects/device-attributes.js';
import { CALLS, answered, failureError } from '../system/errno.js';
import type { LockedMemory } from '../system/errors.js';
import { openLibraries } from './libraries.js';
import { lockedMemory } from '../system/machine.js';
import type { VerbsAddon } from '../addon/native-addon.js';
import { openingError } from './opening-error.js';
import { checkOptions, type VerbsOptions } from './options.js';
import { requestOf, systemOf } from './request.js';
import type { NetworkInterface, RdmaDevice } from '../system/system.js';

export interface InspectedDevice extends RdmaDevice {
  /** Attributes of the device and of its first port; absent when it does not open. */
  readonly attributes?: DeviceAttributes;
  readonly capabilities?: readonly DeviceCapability[];
  /** Path MTU of each port, in the order of `ports`. */
  readonly activeMtuBytes?: readonly number[];
  /** Why it does not open, and what to do about it. */
  readonly problem?: string;
}

export interface VerbsInspection {
  /** Why nothing can be opened: libraries or the addon are missing. */
  readonly problem?: string;
  readonly devices: readonly InspectedDevice[];
  readonly interfaces: readonly NetworkInterface[];
  /** The choice that `verbs(options)` would make. */
  readonly choice?: DeviceChoice;
  /** The reason why it would find none. */
  readonly choiceProblem?: string;
  readonly lockedMemory: LockedMemory;
}

/**
 * @param options as `verbs` takes them
 * @throws DatError DAT_INVALID_PARAMETER for options that are none
 */
export async function inspectVerbs(options: VerbsOptions = {}): Promise<VerbsInspection> {
  consumerCall('inspectVerbs', () => checkOptions(options));
  const opened = attempt(() => openLibraries(options.libraries));
  const addon = 'problem' in opened ? undefined : opened.value;
  const system = await systemOf(options, addon);
  const request = await requestOf(options, system);
  const chosen = attempt(() => chooseDevice(system, request));
  return {
    ...('problem' in opened && { problem: opened.problem }),
    devices: system.devices.map((device) => inspectDevice(addon, device)),
    interfaces: system.interfaces,
    ...('problem' in chosen ? { choiceProblem: chosen.problem } : { choice: chosen.value }),
    lockedMemory: lockedMemory(),
  };
}

function inspectDevice(addon: VerbsAddon | undefined, device: RdmaDevice): InspectedDevice {
  if (addon === undefined) return device;
  const nothing = (): void => undefined;
  const number = addon.openDevice(device.name, nothing, nothing);
  if (number <= 0) {
    const error = failureError(CALLS.open, -number);
    return { ...device, problem: openingError(device, error).message };
  }
  try {
    const [first, ...rest] = device.ports.map((port) => describe(addon, number, port.number));
    if (first === undefined) return device;
    const activeMtuBytes = [first, ...rest].map(({ attributes }) => attributes.activeMtuBytes);
    return { ...device, ...first, activeMtuBytes };
  } catch (error) {
    return { ...device, problem: sentenceOf(error) };
  } finally {
    addon.closeDevice(number, 1);
  }
}

function describe(
  addon: VerbsAddon,
  number: number,
  port: number,
): { attributes: DeviceAttributes; capabilities: readonly DeviceCapability[] } {
  const device = answered('ibv_query_device', addon.queryDevice(number));
  const state = answered('ibv_query_port', addon.queryPort(number, port), `port ${port}`);
  const attributes = deviceAttributesOf(device, state, port);
  return { attributes, capabilities: [...capabilitiesOf(device)] };
}

function attempt<T>(call: () => T): { readonly value: T } | { readonly problem: string } {
  try {
    return { value: call() };
  } catch (error) {
    return { problem: sentenceOf(error) };
  }
}

/** The text of an SpiError. Any other error is a bug of ours, and is not swallowed. */
function sentenceOf(error: unknown): string {
  if (error instanceof SpiError) return error.message;
  throw error;
}
