/** Reads what this machine has for RDMA: sysfs and the addresses of its interfaces. */
import { readdir, readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { type Gid, gidFromIp } from '../../../core/spi/index.js';
import { textOf } from './sysfs.js';
import type {
  GidEntry,
  GidType,
  LinkLayer,
  NetworkInterface,
  PortState,
  RdmaDevice,
  RdmaPort,
  SystemSnapshot,
} from './system.js';

/** The paths that are read; tests bring their own tree. */
export interface SystemSources {
  /** Default `/sys`. */
  readonly sysfs?: string;
  /** Addresses in text by interface; default those of the machine. */
  readonly addresses?: Readonly<Record<string, readonly string[]>>;
}

const natural = new Intl.Collator('en', { numeric: true });

/** Reads the system. Missing files are no error: a machine without RDMA has no devices. */
export async function readSystem(sources: SystemSources = {}): Promise<SystemSnapshot> {
  const sysfs = sources.sysfs ?? '/sys';
  const addresses = sources.addresses ?? machineAddresses();
  const interfaces = await Promise.all(
    (await list(`${sysfs}/class/net`)).map((name) =>
      readInterface(`${sysfs}/class/net/${name}`, name, addresses[name] ?? []),
    ),
  );
  const [uverbs, umad] = await Promise.all([
    characterDevices(`${sysfs}/class/infiniband_verbs`),
    characterDevices(`${sysfs}/class/infiniband_mad`),
  ]);
  const devices = await Promise.all(
    (await list(`${sysfs}/class/infiniband`)).map((name) =>
      readDevice(`${sysfs}/class/infiniband/${name}`, name, uverbs, umad),
    ),
  );
  return { devices, interfaces };
}

async function readDevice(
  path: string,
  name: string,
  uverbs: ReadonlyMap<string, string>,
  umad: ReadonlyMap<string, string>,
): Promise<RdmaDevice> {
  const nodeType = nodeTypeOf(await read(`${path}/node_type`));
  const node = uverbs.get(name);
  const ports = await Promise.all(
    (await list(`${path}/ports`)).map((number) =>
      readPort(`${path}/ports/${number}`, Number(number), nodeType, umad.get(`${name} ${number}`)),
    ),
  );
  return {
    name,
    nodeType,
    nodeGuid: await read(`${path}/node_guid`),
    firmware: await read(`${path}/fw_ver`),
    ...(node !== undefined && { uverbs: node }),
    ports,
  };
}

async function readPort(
  path: string,
  number: number,
  nodeType: RdmaDevice['nodeType'],
  umad: string | undefined,
): Promise<RdmaPort> {
  const linkLayer = (await read(`${path}/link_layer`)) as LinkLayer;
  const indices = (await list(`${path}/gids`)).map(Number);
  const transport = nodeType === 'RNIC' ? 'iWARP' : linkLayer;
  const gids = indices.map((index) => readGid(path, index, transport));
  return {
    number,
    state: afterColon(await read(`${path}/state`)) as PortState,
    physicalState: afterColon(await read(`${path}/phys_state`)),
    linkLayer,
    rate: await read(`${path}/rate`),
    gids: gids.filter((entry) => entry !== undefined),
    ...(umad !== undefined && { umad }),
  };
}

/**
 * A table has hundreds of slots, nearly all of them empty (1024 of rxe): read one after the other
 * without a promise each, that takes milliseconds.
 */
function readGid(
  port: string,
  index: number,
  transport: LinkLayer | 'iWARP',
): GidEntry | undefined {
  const text = textOf(`${port}/gids/${index}`);
  // A slot without an interface of its own is empty or link-local by default: only zero is empty.
  if (text === '' || !/[1-9a-f]/.test(text)) return undefined;
  const gid = parseGid(text);
  if (gid === undefined) return undefined;
  const type = gidTypeOf(textOf(`${port}/gid_attrs/types/${index}`), transport);
  const netdev = textOf(`${port}/gid_attrs/ndevs/${index}`);
  return { index, gid, type, ...(netdev !== '' && { netdev }) };
}

function gidTypeOf(text: string, transport: LinkLayer | 'iWARP'): GidType {
  if (transport === 'iWARP') return 'iWARP';
  if (transport === 'InfiniBand') return 'IB';
  return text === 'RoCE v2' ? 'RoCE v2' : 'RoCE v1';
}

async function readInterface(
  path: string,
  name: string,
  addresses: readonly string[],
): Promise<NetworkInterface> {
  const [mtu, hardware] = await Promise.all([read(`${path}/mtu`), read(`${path}/address`)]);
  const bytes = hardware === '' ? [] : hardware.split(':').map((byte) => parseInt(byte, 16));
  return {
    name,
    mtuBytes: Number(mtu),
    hardwareAddress: Uint8Array.from(bytes),
    addresses: [...addresses].sort((a, b) => Number(a.includes(':')) - Number(b.includes(':'))),
  };
}

/** Names of character devices by what they are for: `mlx5_0` of verbs, `mlx5_0 1` of MADs. */
async function characterDevices(path: string): Promise<ReadonlyMap<string, string>> {
  const names = (await list(path)).filter((name) => /^(?:uverbs|umad)\d+$/.test(name));
  const entries = await Promise.all(
    names.map(async (name): Promise<[string, string]> => {
      const [device, port] = await Promise.all([
        read(`${path}/${name}/ibdev`),
        read(`${path}/${name}/port`),
      ]);
      return [port === '' ? device : `${device} ${port}`, name];
    }),
  );
  return new Map(entries);
}

function machineAddresses(): Record<string, readonly string[]> {
  return Object.fromEntries(
    Object.entries(networkInterfaces()).map(([name, list = []]) => [
      name,
      list.map(({ address }) => address),
    ]),
  );
}

function nodeTypeOf(text: string): RdmaDevice['nodeType'] {
  const name = afterColon(text);
  return name === 'CA' || name === 'RNIC' ? name : 'other';
}

/** `4: ACTIVE` is a number and its name. */
function afterColon(text: string): string {
  return text.replace(/^\d+:\s*/, '');
}

function parseGid(text: string): Gid | undefined {
  try {
    return gidFromIp(text);
  } catch {
    return undefined;
  }
}

/** Reads a file; '' if it does not exist or is not readable for us. */
function read(path: string): Promise<string> {
  return readFile(path, 'utf8').then(
    (text) => text.trim(),
    () => '',
  );
}

function list(path: string): Promise<string[]> {
  return readdir(path).then(
    (names) => names.sort((a, b) => natural.compare(a, b)),
    () => [],
  );
}
