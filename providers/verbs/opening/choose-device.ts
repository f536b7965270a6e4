/**
 * Chooses the device, port and GID of an adapter, and gives the reason in words: a pure function of
 * the machine's devices and the request.
 */
import { show } from '../../../core/spi/checks/index.js';
import {
  type Gid,
  gidEquals,
  gidFromIp,
  ipFromGid,
  isIpv4Gid,
  SpiError,
} from '../../../core/spi/index.js';
import { noDevices } from '../system/errors.js';
import { isLinkLocal } from '../system/link-local.js';
import { interfaceOf } from '../system/port-interface.js';
import type { GidEntry, GidType, RdmaDevice, RdmaPort, SystemSnapshot } from '../system/system.js';

/** The preferred GID of a port when none is named, and how a GID is written for people. */
interface Preference {
  readonly takes: (entry: GidEntry) => boolean;
  /** The reason, for people. */
  readonly why: string;
}

const of =
  (type: GidType, gid: (gid: Gid) => boolean = () => true) =>
  (entry: GidEntry): boolean =>
    entry.type === type && gid(entry.gid);

const isGlobalIpv6 = (gid: Gid): boolean => !isIpv4Gid(gid) && !isLinkLocal(gid);

/** Preferences, best first. RoCE v1 is not routed, and peers on v2 do not receive it. */
const PREFERENCES: readonly Preference[] = [
  { takes: of('RoCE v2', isIpv4Gid), why: 'RoCE v2 over IPv4' },
  { takes: of('RoCE v2', isGlobalIpv6), why: 'RoCE v2 over IPv6, none over IPv4' },
  { takes: of('RoCE v2'), why: 'RoCE v2 link-local, the interface has no other address' },
  { takes: of('IB'), why: 'InfiniBand' },
  { takes: of('iWARP'), why: 'iWARP' },
  { takes: of('RoCE v1'), why: 'RoCE v1, which RoCE v2 peers do not hear: there is no v2 GID' },
];

/** The best of these, and of equals the one with the lowest index. */
function preferredGid(
  entries: readonly GidEntry[],
): { readonly entry: GidEntry; readonly why: string } | undefined {
  for (const { takes, why } of PREFERENCES) {
    const entry = entries.find(takes);
    if (entry !== undefined) return { entry, why };
  }
  return undefined;
}

/** `GID 1 (RoCE v2, 10.0.0.1, eth0)`. */
function gidText({ index, gid, type, netdev }: GidEntry): string {
  const where = netdev === undefined ? '' : `, ${netdev}`;
  return `GID ${index} (${type}, ${ipFromGid(gid)}${where})`;
}

/** The request: a device, or an address, or nothing in particular. */
export interface DeviceRequest {
  /** Name of an RDMA device (`mlx5_0`) or of a network interface (`eth0`). */
  readonly device?: string;
  /** A local or remote IP address, in text. */
  readonly address?: string;
  readonly port?: number;
  readonly gidIndex?: number;
  /** The system's route to `address`; needed if that is not one of our own. */
  readonly route?: Route;
}

/** The result of the routing table: the source address that it would use, or why there is none. */
export type Route = { readonly source: string } | { readonly problem: string };

export interface DeviceChoice {
  readonly device: string;
  readonly port: number;
  readonly gidIndex: number;
  readonly gid: Gid;
  readonly gidType: GidType;
  readonly netdev?: string;
  /**
   * The IP address that the connection manager binds, with a zone where it is link-local; absent on
   * InfiniBand without IP over InfiniBand.
   */
  readonly address?: string;
  /** Why this one; for the log and for `dapl info`. */
  readonly reason: string;
  /** A likely problem with the choice. */
  readonly warning?: string;
}

interface Place {
  readonly device: RdmaDevice;
  readonly port: RdmaPort;
}

interface Candidate extends Place {
  readonly entry: GidEntry;
}

/**
 * @throws SpiError('ENODEV') no such device, or none at all; ('EINVAL') options that contradict
 * each other, a port or GID that is not there; ('EADDRNOTAVAIL') no device serves the address;
 * ('ENETUNREACH') no route, or the port is down
 */
export function chooseDevice(system: SystemSnapshot, request: DeviceRequest): DeviceChoice {
  checkRequest(request);
  if (system.devices.length === 0) throw noDevices();
  if (request.address !== undefined) return byAddress(system, request.address, request.route);
  const { device: name } = request;
  if (name === undefined) return firstUsable(system);
  const device = system.devices.find((each) => each.name === name);
  if (device !== undefined) return byName(system, device, request);
  const choice = byInterface(system, name, request);
  if (choice !== undefined) return choice;
  throw new SpiError('ENODEV', `no RDMA device is called ${show(name)}; ${servedText(system)}`);
}

/** @throws SpiError('EINVAL') for what does not go together */
export function checkRequest({ device, address, port, gidIndex }: DeviceRequest): void {
  if (device !== undefined && address !== undefined) {
    throw new SpiError('EINVAL', `device ${show(device)} or address ${show(address)}, not both`);
  }
  const named = port !== undefined ? `port ${port}` : `gidIndex ${gidIndex}`;
  if (device === undefined && (port !== undefined || gidIndex !== undefined)) {
    throw new SpiError('EINVAL', `${named} is of a device: name that too`);
  }
}

function byName(system: SystemSnapshot, device: RdmaDevice, request: DeviceRequest): DeviceChoice {
  const port = portOf(device, request.port);
  const where = placeText({ device, port });
  const named = request.port === undefined ? `${device.name} was named` : `${where} was named`;
  const { gidIndex } = request;
  const isDown = port.state !== 'ACTIVE';
  const warning = isDown ? { warning: `${where} is ${stateText(port)}` } : {};
  if (gidIndex !== undefined) {
    const entry = port.gids.find(({ index }) => index === gidIndex);
    if (entry === undefined) throw noSuchGid(where, gidIndex, port);
    const reason = `${named}, and ${gidText(entry)}`;
    return { ...choiceOf(system, { device, port, entry }, reason), ...warning };
  }
  const best = preferredGid(port.gids);
  if (best === undefined) throw withoutGid(where, device);
  const reason = `${named}; ${gidText(best.entry)} of port ${port.number} is taken: ${best.why}`;
  return { ...choiceOf(system, { device, port, entry: best.entry }, reason), ...warning };
}

/** The port that was named, else the first active one. */
function portOf(device: RdmaDevice, number: number | undefined): RdmaPort {
  const { name, ports } = device;
  if (number !== undefined) {
    const port = ports.find((each) => each.number === number);
    if (port !== undefined) return port;
    const present = ports.map((each) => each.number).join(', ');
    throw new SpiError('EINVAL', `${name} has no port ${number}; it has ${present || 'none'}`);
  }
  const active = ports.find(({ state }) => state === 'ACTIVE');
  if (active !== undefined) return active;
  throw down(`no port of ${name} is active`, [...ports.map((port) => ({ device, port }))]);
}

function byInterface(
  system: SystemSnapshot,
  name: string,
  { port, gidIndex }: DeviceRequest,
): DeviceChoice | undefined {
  const ofInterface = candidates(system).filter((each) => interfaceOf(system, each) === name);
  const all = ofInterface.filter(
    (each) =>
      (port === undefined || each.port.number === port) &&
      (gidIndex === undefined || each.entry.index === gidIndex),
  );
  const [any] = ofInterface;
  if (any === undefined) return undefined;
  if (all.length === 0) throw otherPlace(name, any, ofInterface, gidIndex);
  const active = all.filter(isActive);
  if (active.length === 0) throw down(`the RDMA port of ${name} is not active`, all);
  const { best, why } = preferred(active);
  const reason = `${name} is ${placeText(best)}; ${gidText(best.entry)} is taken: ${why}`;
  return choiceOf(system, best, reason);
}

function byAddress(system: SystemSnapshot, text: string, route: Route | undefined): DeviceChoice {
  const [address = ''] = text.split('%');
  const gid = gidOf(address);
  const isOwn = system.interfaces.some(({ addresses }) => addresses.includes(ipFromGid(gid)));
  if (isOwn) return bySource(system, ipFromGid(gid), `${ipFromGid(gid)} is our own`);
  if (route === undefined || 'problem' in route) {
    const problem = route === undefined ? 'no route is known' : route.problem;
    throw new SpiError('ENETUNREACH', `${text} cannot be reached: ${problem}`);
  }
  return bySource(system, route.source, `${text} is reached from ${route.source}`);
}

/** Finds the GID for this address of ours; otherwise the port whose interface has it. */
function bySource(system: SystemSnapshot, source: string, how: string): DeviceChoice {
  const gid = gidOf(source);
  const all = candidates(system);
  const byGid = all.filter(({ entry }) => gidEquals(entry.gid, gid));
  const netdev = system.interfaces.find(({ addresses }) => addresses.includes(source))?.name;
  const matches =
    byGid.length > 0
      ? byGid
      : all.filter((each) => !isRoce(each.entry) && interfaceOf(system, each) === netdev);
  const active = matches.filter(isActive);
  if (matches.length === 0) throw unserved(system, how, source, netdev);
  if (active.length === 0) throw down(`${how}, whose RDMA port is not active`, matches);
  const { best, why } = preferred(active);
  const on = netdev === undefined ? '' : ` on ${netdev}`;
  const reason = `${how}${on}: ${gidText(best.entry)} of ${placeText(best)} (${why})`;
  return { ...choiceOf(system, best, reason), address: zoned(source, netdev) };
}

/** The first device, in natural order of names, that has an active port with a GID. */
function firstUsable(system: SystemSnapshot): DeviceChoice {
  const active = candidates(system).filter(isActive);
  const names = [...new Set(active.map(({ device }) => device.name))];
  const [first] = active;
  if (first === undefined) {
    const places = system.devices.flatMap((device) =>
      device.ports.map((port) => ({ device, port })),
    );
    throw down('no RDMA device has an active port with a GID', places);
  }
  const { best, why } = preferred(active.filter(({ port }) => port === first.port));
  const which =
    names.length === 1
      ? `${first.device.name} is the only usable device`
      : `${first.device.name} is the first of the usable devices ${names.join(', ')}`;
  const reason = `${which}; ${gidText(best.entry)} of port ${first.port.number} is taken: ${why}`;
  return choiceOf(system, best, reason);
}

/** Every GID of every port of devices that speak verbs to their peers. */
function candidates(system: SystemSnapshot): Candidate[] {
  return system.devices
    .filter(({ nodeType }) => nodeType !== 'other')
    .flatMap((device) =>
      device.ports.flatMap((port) => port.gids.map((entry) => ({ device, port, entry }))),
    );
}

/** @param among not empty */
function preferred(among: readonly Candidate[]): { best: Candidate; why: string } {
  const found = preferredGid(among.map(({ entry }) => entry));
  const best = among.find(({ entry }) => entry === found?.entry);
  if (best === undefined || found === undefined) throw new RangeError('no candidates');
  return { best, why: found.why };
}

function choiceOf(system: SystemSnapshot, candidate: Candidate, reason: string): DeviceChoice {
  const { device, port, entry } = candidate;
  const netdev = interfaceOf(system, candidate);
  const address = addressOf(system, entry, netdev);
  return {
    device: device.name,
    port: port.number,
    gidIndex: entry.index,
    gid: entry.gid,
    gidType: entry.type,
    ...(netdev !== undefined && { netdev }),
    ...(address !== undefined && { address }),
    reason,
  };
}

/** The address: on RoCE from the GID, otherwise from the interface over the port. */
function addressOf(
  system: SystemSnapshot,
  entry: GidEntry,
  netdev: string | undefined,
): string | undefined {
  if (isRoce(entry)) return zoned(ipFromGid(entry.gid), netdev);
  return system.interfaces.find(({ name }) => name === netdev)?.addresses[0];
}

function zoned(address: string, netdev: string | undefined): string {
  return netdev !== undefined && isLinkLocal(gidFromIp(address)) ? `${address}%${netdev}` : address;
}

function gidOf(address: string): Gid {
  try {
    return gidFromIp(address);
  } catch (cause) {
    throw new SpiError('EINVAL', `${show(address)} is not an IP address`, { cause });
  }
}

const isRoce = ({ type }: GidEntry): boolean => type === 'RoCE v1' || type === 'RoCE v2';
const isActive = ({ port }: Place): boolean => port.state === 'ACTIVE';
const placeText = ({ device, port }: Place): string => `${device.name} port ${port.number}`;
const stateText = (port: RdmaPort): string => `${port.state} (${port.physicalState})`;

/** Lists the interfaces that have a device: people look for them when theirs has none. */
function servedText(system: SystemSnapshot): string {
  const parts = system.devices.map((device) => {
    const netdevs = candidates({ ...system, devices: [device] })
      .map((each) => interfaceOf(system, each))
      .filter((name) => name !== undefined);
    const on = [...new Set(netdevs)].join(', ');
    return on === '' ? device.name : `${device.name} on ${on}`;
  });
  return `there is ${parts.join('; ')}`;
}

function unserved(
  system: SystemSnapshot,
  how: string,
  source: string,
  netdev: string | undefined,
): SpiError {
  const roce = candidates(system).find((each) => interfaceOf(system, each) === netdev);
  const on = netdev === undefined ? '' : ` on ${netdev}`;
  const why =
    roce !== undefined && netdev !== undefined
      ? `${roce.device.name} has no GID for ${source} (the kernel adds it when the interface is up)`
      : `no RDMA device has that interface: ${servedText(system)}`;
  return new SpiError('EADDRNOTAVAIL', `${how}${on}, but ${why}`);
}

function down(what: string, places: readonly Place[]): SpiError {
  const list = [...new Set(places.map((each) => `${placeText(each)} is ${stateText(each.port)}`))];
  const remedy = 'look at the cable, the switch, and "ip link set <interface> up"';
  return new SpiError('ENETUNREACH', `${what}: ${list.join('; ') || 'it has none'}; ${remedy}`);
}

/** The interface has a device, but not at this port, or not with this GID. */
function otherPlace(
  name: string,
  place: Place,
  all: readonly Candidate[],
  gidIndex: number | undefined,
): SpiError {
  if (gidIndex === undefined) return new SpiError('EINVAL', `${name} is ${placeText(place)}`);
  const gids = all.map(({ entry }) => entry);
  return noSuchGid(`${name}, which is ${placeText(place)},`, gidIndex, { gids });
}

function noSuchGid(where: string, index: number, { gids }: Pick<RdmaPort, 'gids'>): SpiError {
  const present = gids.map(gidText).join(', ') || 'none';
  return new SpiError('EINVAL', `${where} has no GID ${index}; in use: ${present}`);
}

function withoutGid(where: string, { name }: RdmaDevice): SpiError {
  const text = `${where} has no GID: give the interface of ${name} an address`;
  return new SpiError('EADDRNOTAVAIL', text);
}
