/** Reads the request of the options, and what this machine has for it. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIP } from 'node:net';
import { constants } from 'node:os';
import { gidFromIp, ipFromGid } from '../../../core/spi/index.js';
import type { VerbsAddon } from '../addon/native-addon.js';
import { answered, CALLS, made } from '../system/errno.js';
import { readSystem } from '../system/read-system.js';
import type {
  GidEntry,
  GidType,
  LinkLayer,
  PortState,
  RdmaDevice,
  RdmaPort,
  SystemSnapshot,
} from '../system/system.js';
import type { DeviceRequest, Route } from './choose-device.js';
import type { VerbsOptions } from './options.js';

/** Devices as libibverbs knows them, for those that sysfs does not: a library of the user's own. */
const GID_BYTES = 16;
/** `enum ibv_port_state`. */
const STATES: readonly PortState[] = ['NOP', 'DOWN', 'INIT', 'ARMED', 'ACTIVE', 'ACTIVE_DEFER'];
/** `IBV_LINK_LAYER_*`. */
const LINK_LAYERS: readonly LinkLayer[] = ['Unspecified', 'InfiniBand', 'Ethernet'];

function devicesOfLibrary(addon: VerbsAddon): RdmaDevice[] {
  return answered('ibv_get_device_list', addon.listDevices()).flatMap((name) => {
    const nothing = (): void => undefined;
    const number = addon.openDevice(name, nothing, nothing);
    if (-number === constants.errno.ENODEV) return []; // it has gone meanwhile
    made(CALLS.open, number, name);
    try {
      return [deviceOf(addon, name, number)];
    } finally {
      addon.closeDevice(number, 1);
    }
  });
}

function deviceOf(addon: VerbsAddon, name: string, number: number): RdmaDevice {
  const attributes = answered('ibv_query_device', addon.queryDevice(number), name);
  const ports = Array.from({ length: attributes.ports }, (_, i) => portOf(addon, number, i + 1));
  return {
    name,
    nodeType: 'CA',
    nodeGuid: attributes.nodeGuid.toString(16).padStart(16, '0'),
    firmware: attributes.firmwareVersion,
    ports,
  };
}

function portOf(addon: VerbsAddon, device: number, number: number): RdmaPort {
  const port = answered('ibv_query_port', addon.queryPort(device, number), `port ${number}`);
  const linkLayer = LINK_LAYERS[port.linkLayer] ?? 'Unspecified';
  const indices = Array.from({ length: port.gidTableLength }, (_, index) => index);
  const gids = indices.map((index): GidEntry | undefined => {
    const gid = new Uint8Array(GID_BYTES);
    const type = addon.queryGid(device, number, index, gid);
    if (type < 0 || gid.every((byte) => byte === 0)) return undefined;
    return { index, gid, type: gidTypeOf(type, linkLayer) };
  });
  return {
    number,
    state: STATES[port.state] ?? 'NOP',
    physicalState: `${port.physicalState}`,
    linkLayer,
    rate: '',
    gids: gids.filter((entry) => entry !== undefined),
  };
}

/** `enum ibv_gid_type_sysfs` as the addon has it: 1 RoCE v1, 2 RoCE v2, 0 neither. */
function gidTypeOf(type: number, linkLayer: LinkLayer): GidType {
  if (type === 2) return 'RoCE v2';
  if (type === 1) return 'RoCE v1';
  return linkLayer === 'Ethernet' ? 'RoCE v2' : 'IB';
}

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

// The address that the system would send from: its routing table, asked without sending.

/** @param address an IP address in text, perhaps with a zone (`fe80::1%eth0`) */
export async function routeTo(address: string): Promise<Route> {
  const family = isIP(address);
  if (family === 0) return { problem: 'it is not an IP address' };
  const socket = createSocket(family === 6 ? 'udp6' : 'udp4');
  try {
    socket.connect(1, address);
    await once(socket, 'connect');
    return { source: socket.address().address.replace(/%.*$/, '') };
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
    return { problem: `there is no way there (${code})` };
  } finally {
    socket.close();
  }
}
