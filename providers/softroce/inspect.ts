/**
 * Reports what softroce can use on this machine: for `dapl info`, and for programs that choose a
 * provider.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { checkValue } from '../../core/spi/checks/index.js';
import { refusing } from '../../core/spi/errors/consumer-errors.js';
import { type Gid, gidFromIp } from '../../core/spi/index.js';
import { loadNativeAddon, type NativeAddon, nativeAddonProblem } from './port/native-addon.js';
import { bindError } from './port/port-errors.js';
import { pathMtu, ROCE_UDP_PORT, UDP_PORT } from './port/port-options.js';
import { groupNames } from './shared/names.js';

export interface SoftroceAddress {
  readonly interface: string;
  /** In text; a link-local one without its zone. */
  readonly address: string;
  readonly isLoopback: boolean;
  /** The MTU of the link, and the path MTU that fits it; absent without the native port. */
  readonly linkMtuBytes?: number;
  readonly pathMtuBytes?: number;
  /** Why it cannot be opened: another program has the port. */
  readonly problem?: string;
  /** Programs of this user share it: `shared: true` joins them. Absent unless they do. */
  readonly isShared?: boolean;
}

export interface SoftroceInspection {
  /** The packet port in use: the native one, or node:dgram, which is slower. */
  readonly port: 'native' | 'dgram';
  /** Why it is not the native one. */
  readonly portProblem?: string;
  readonly udpPort: number;
  /** Addresses of this machine: others' reach before loopback, IPv4 first. */
  readonly addresses: readonly SoftroceAddress[];
  /** The default choice: the first one that can be opened. */
  readonly preferred?: string;
}

/**
 * @param udpPort 1 to 65535; default 4791
 * @throws DatError DAT_INVALID_PARAMETER
 */
export async function inspectSoftroce(udpPort = ROCE_UDP_PORT): Promise<SoftroceInspection> {
  checkValue('udpPort', udpPort, UDP_PORT, refusing('inspectSoftroce'));
  const addon = loadNativeAddon();
  const portProblem = nativeAddonProblem();
  const found = Object.entries(networkInterfaces()).flatMap(([name, list = []]) =>
    list
      .filter(({ address }) => !/^fe80:/i.test(address))
      .map(({ address, internal }) => ({ interface: name, address, isLoopback: internal })),
  );
  const rank = ({ address, isLoopback }: { address: string; isLoopback: boolean }): number =>
    (isLoopback ? 2 : 0) + (address.includes(':') ? 1 : 0);
  found.sort((a, b) => rank(a) - rank(b));
  const addresses = await Promise.all(
    found.map(async (each): Promise<SoftroceAddress> => {
      const problem = await openingProblem(each.address, udpPort);
      const isShared = addon !== undefined && isGroupOf(addon, gidFromIp(each.address), udpPort);
      const link = addon?.findLink(gidFromIp(each.address))?.[0];
      return {
        ...each,
        ...(link !== undefined && {
          linkMtuBytes: link,
          ...fitting(link, gidFromIp(each.address)),
        }),
        ...(problem !== undefined && { problem }),
        ...(isShared && { isShared }),
      };
    }),
  );
  const preferred = addresses.find(({ problem }) => problem === undefined)?.address;
  return {
    port: addon === undefined ? 'dgram' : 'native',
    ...(portProblem !== undefined && { portProblem }),
    udpPort,
    addresses,
    ...(preferred !== undefined && { preferred }),
  };
}

function fitting(linkMtuBytes: number, gid: Gid): { pathMtuBytes?: number } {
  try {
    return { pathMtuBytes: pathMtu(linkMtuBytes, gid) };
  } catch {
    return {};
  }
}

/**
 * True if there is a group with this address alone. A group with more has a name made of them all.
 */
function isGroupOf(addon: NativeAddon, gid: Gid, udpPort: number): boolean {
  try {
    const socket = addon.connectUnix(groupNames([gid], udpPort).broker);
    const { isOwnUser } = socket.identity();
    socket.close();
    return isOwnUser;
  } catch {
    return false;
  }
}

/** Tries the UDP port. */
async function openingProblem(address: string, udpPort: number): Promise<string | undefined> {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  try {
    socket.bind({ port: udpPort, address, exclusive: true });
    await once(socket, 'listening');
    return undefined;
  } catch (error) {
    return bindError(error, address, udpPort).message;
  } finally {
    socket.close();
  }
}
