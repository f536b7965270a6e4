/** Devices as libibverbs knows them, for those that sysfs does not: a library of the user's own. */
import { constants } from 'node:os';
import { CALLS, answered, made } from '../system/errno.js';
import type { VerbsAddon } from '../addon/native-addon.js';
import type {
  GidEntry,
  GidType,
  LinkLayer,
  PortState,
  RdmaDevice,
  RdmaPort,
} from '../system/system.js';

const GID_BYTES = 16;
/** `enum ibv_port_state`. */
const STATES: readonly PortState[] = ['NOP', 'DOWN', 'INIT', 'ARMED', 'ACTIVE', 'ACTIVE_DEFER'];
/** `IBV_LINK_LAYER_*`. */
const LINK_LAYERS: readonly LinkLayer[] = ['Unspecified', 'InfiniBand', 'Ethernet'];

export function devicesOfLibrary(addon: VerbsAddon): RdmaDevice[] {
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
