/** What the options ask for, with what this machine says to it. */
import { isIP } from 'node:net';
import { ipFromGid, gidFromIp } from '../../../core/spi/index.js';
import type { DeviceRequest } from './choose-device.js';
import { devicesOfLibrary } from './library-system.js';
import type { VerbsAddon } from '../addon/native-addon.js';
import type { VerbsOptions } from './options.js';
import { readSystem } from '../system/read-system.js';
import { routeTo } from './route.js';
import type { SystemSnapshot } from '../system/system.js';

/** The machine; with a libibverbs of the user's own, also devices that only that one knows. */
export async function systemOf(
  options: VerbsOptions,
  addon: VerbsAddon | undefined,
): Promise<SystemSnapshot> {
  const system = await readSystem();
  if (options.libraries?.verbs === undefined || addon === undefined) return system;
  const known = new Set(system.devices.map(({ name }) => name));
  const others = devicesOfLibrary(addon).filter(({ name }) => !known.has(name));
  return { ...system, devices: [...system.devices, ...others] };
}

/** Asks for the route where that decides: towards an address that is not our own. */
export async function requestOf(
  options: VerbsOptions,
  system: SystemSnapshot,
): Promise<DeviceRequest> {
  const { device, address, port, gidIndex } = options;
  const request = {
    ...(device !== undefined && { device }),
    ...(address !== undefined && { address }),
    ...(port !== undefined && { port }),
    ...(gidIndex !== undefined && { gidIndex }),
  };
  if (address === undefined || isIP(address) === 0 || isOwn(system, address)) return request;
  return { ...request, route: await routeTo(address) };
}

function isOwn({ interfaces }: SystemSnapshot, address: string): boolean {
  const text = ipFromGid(gidFromIp(address.replace(/%.*$/, '')));
  return interfaces.some(({ addresses }) => addresses.includes(text));
}
