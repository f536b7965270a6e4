/** Parts of the softroce provider, shared with its own processes: the hosts of XRC domains. */
import {
  type CmModule,
  integerOption,
  type PacketPort,
  type ProviderInstance,
  readIaParams,
  token,
} from '../../core/spi/index.js';
import { BOOLEAN, checkValue, oneOf, optional } from '../../core/spi/checks/index.js';
import { einval } from '../../core/spi/errors/einval.js';
import { PARAMETERS, parametersOf } from '../hca/common/parameters.js';
import { gidsOf, PORT_OPTIONS } from '../hca/common/port-options.js';
import {
  type DeviceHooks,
  type DeviceSetup,
  HCA_PROVIDES,
  type HcaParameters,
} from '../hca/index.js';
import { machineTime, monotonicClock, packageFile } from '../host/index.js';
import { bindHca } from '../kit/bind-hca.js';
import { HcaNode } from '../kit/hca-node.js';
import { joinSharedAddress, openGroupPort, openSocketPort } from './socket-port.js';
import { localAddresses } from './port/local-addresses.js';
import { loadNativeAddon } from './port/native-addon.js';
import {
  ICRC_CHECK,
  type IcrcCheck,
  ROCE_UDP_PORT,
  SOCKET_PORT,
  SOCKET_PORT_COUNTERS,
  type SocketPort,
  UDP_PORT,
} from './port/port-options.js';
import type { JoinedGroup } from './shared/join-group.js';
import { SHM, type ShmOptions, shmOptionsOf } from './shm/shm-options.js';
import { SharedNames } from './xrc-host/mirror.js';
import { openHostedDomain, type XrcHostInit } from './xrc-host/open-domain.js';

export interface SoftroceOptions {
  /**
   * 1 to 64 local IP addresses, in text, or names of network interfaces (`eth0`). A name means the
   * addresses that the interface has when this is called. The first one is the default source. No
   * other program may use the addresses for RoCE; 127.0.0.1 and 127.0.0.2 can be devices of two
   * processes.
   */
  readonly addresses: readonly string[];
  /** UDP port of both sides: 4791 (default) unless both ends are ours. */
  readonly udpPort?: number;
  /** Upper bound of the path MTU: 256, 512, 1024, 2048 or 4096; default: what the link carries. */
  readonly mtuBytes?: number;
  /**
   * `auto` (default): the native port if it has been built, otherwise node:dgram, which is slower.
   */
  readonly port?: 'auto' | 'native' | 'dgram';
  /**
   * Check of the ICRC of IPv4 packets: `recovered` (default), or `exact`, which needs CAP_NET_RAW
   * and the native port (docs/softroce.md).
   */
  readonly icrcCheck?: IcrcCheck;
  /**
   * Shares memory with other devices of this host and user, and sends the packets of their
   * connections through it: true (default, where the native port is), false, or limits
   * (docs/softroce.md).
   */
  readonly shm?: boolean | Partial<ShmOptions>;
  /**
   * Lets other programs of this user have the same addresses. Each needs this option, and the
   * addresses in the same order (docs/shared.md). Needs the native port; default false.
   */
  readonly shared?: boolean;
  /** Limits and timers of the software HCA; docs/softroce.md has their ranges. */
  readonly parameters?: Partial<HcaParameters>;
}

const OPTIONS = {
  ...PORT_OPTIONS,
  udpPort: UDP_PORT,
  port: SOCKET_PORT,
  icrcCheck: ICRC_CHECK,
  shm: SHM,
  shared: optional(BOOLEAN),
  parameters: PARAMETERS,
};
/** From the root of the package on; pack.mjs has it too. */
const XRC_HOST_PROGRAM = 'dist/providers/softroce/xrc-host-program.js';
const NODE = token<HcaNode>('softroce/node');

export const SOFTROCE_META = {
  name: 'softroce',
  kind: 'provider',
  sdkVersion: '2.0',
  requires: ['mad', 'cm', 'xrc'],
  provides: [...HCA_PROVIDES, 'multicast'],
  options: OPTIONS,
} as const;

/** @param onOpen the device is there, and its CM */
export function softroceInstance(
  given: SoftroceOptions,
  onOpen?: (node: HcaNode, cm: CmModule) => void,
): ProviderInstance {
  const { udpPort = ROCE_UDP_PORT, port = 'auto', mtuBytes, icrcCheck } = given;
  const addresses = localAddresses('one of addresses', given.addresses);
  gidsOf(addresses);
  const parameters = parametersOf(given.parameters);
  const shm = shmOptionsOf(given.shm);
  const { shared = false } = given;
  return {
    deviceKey: `softroce:${addresses.join(',')}:${udpPort}${shared ? ':shared' : ''}`,
    async open(registrar, deviceLogger): Promise<void> {
      const logger = deviceLogger.child({ provider: 'softroce' });
      const group = shared
        ? await joinSharedAddress({ gids: gidsOf(addresses), udpPort, port, logger })
        : undefined;
      const choice = {
        addresses,
        udpPort,
        port,
        logger,
        ...(mtuBytes !== undefined && { mtuBytes }),
        ...(icrcCheck !== undefined && { icrcCheck }),
        shm: shm ?? false,
      };
      const socketPort = await (group ? openGroupPort(group, choice) : openSocketPort(choice));
      const setup = {
        name: `softroce ${addresses[0] ?? ''}`,
        port: socketPort,
        logger,
        parameters,
        share: group?.share,
        ...(group && { xrcHost: xrcHostOf(group, { ...given, addresses }) }),
      };
      bindHca(registrar, {
        port: socketPort,
        node: NODE,
        makeNode: (through) => softroceNode({ ...setup, through }),
        clock: monotonicClock,
        onOpen: (node, cm) => {
          node.atExit(cm);
          group?.serve({ node, cm, logger });
          onOpen?.(node, cm);
        },
      });
    },
  };
}

/** @param options of the device that the host of a domain opens, but for `shared` */
function xrcHostOf({ name, turn }: JoinedGroup, options: SoftroceOptions): XrcHostInit {
  return {
    addon: loadNativeAddon()!,
    groupName: name,
    turn,
    names: new SharedNames(),
    program: packageFile(XRC_HOST_PROGRAM),
    options,
  };
}

export interface SoftroceNodeOptions extends DeviceSetup {
  readonly port: SocketPort;
  /** The port by which the device reaches that port; default: the port itself. */
  readonly through?: PacketPort;
  /** Set if processes share XRC domains. */
  readonly xrcHost?: XrcHostInit;
}

/** A softroce device of this process: the software HCA on a socket port. */
export function softroceNode(options: SoftroceNodeOptions): HcaNode {
  const { port, through = port, xrcHost } = options;
  const { mapFile, shareMemory, allocate } = port;
  return new HcaNode({
    ...options,
    port: through,
    time: machineTime(),
    hooks: {
      portCounters: SOCKET_PORT_COUNTERS,
      ...(mapFile && { mapFile: mapFile.bind(port) }),
      ...(shareMemory && { shareMemory: shareMemory.bind(port) }),
      ...(shareMemory && xrcHost && xrcHooks(xrcHost, shareMemory.bind(port))),
      ...(allocate && { allocate: allocate.bind(port) }),
    },
    rest: port.rest?.bind(port),
  });
}

/** Notes the name of shared memory, by which the host of a domain can have it, too. */
function xrcHooks(
  host: XrcHostInit,
  shareMemory: NonNullable<DeviceHooks['shareMemory']>,
): Pick<DeviceHooks, 'openXrcDomain' | 'shareMemory'> {
  return {
    openXrcDomain: (hca, sharing) => openHostedDomain(host, hca, sharing),
    shareMemory: (name, lengthBytes) => {
      const memory = shareMemory(name, lengthBytes);
      host.names.set(memory, name);
      return memory;
    },
  };
}

// Lines of dat.conf: `"eth0"`, `"10.0.0.1,10.0.0.2 udpPort=4791"`.

const PARAMS = ['udpPort', 'mtuBytes', 'port', 'icrcCheck', 'shm', 'shared'];
const ON_OR_OFF = optional(oneOf(['true', 'false'] as const));
const PORT_NUMBER = oneOf(['0', '1']);

/**
 * The options that an ia_params field stands for: interfaces or local addresses, parted by
 * commas; then, as OpenFabrics writes it, perhaps a port number, which is 0 or 1 here; then
 * options.
 * @throws SpiError('EINVAL')
 */
export function optionsOf(iaParams: string): SoftroceOptions {
  const params = readIaParams(iaParams, PARAMS);
  const [where, portNumber = '0', ...rest] = params.words;
  if (where === undefined || rest.length > 0) {
    const expected = 'an interface or addresses, such as "eth0" or "127.0.0.1 udpPort=4791"';
    throw einval('ia_params', iaParams, expected);
  }
  checkValue('the port number', portNumber, PORT_NUMBER, einval);
  const udpPort = integerOption(params, 'udpPort');
  const mtuBytes = integerOption(params, 'mtuBytes');
  const port = params.options.port;
  const icrcCheck = params.options.icrcCheck;
  checkValue('port', port, SOCKET_PORT, einval);
  checkValue('icrcCheck', icrcCheck, ICRC_CHECK, einval);
  const shm = params.options.shm;
  checkValue('shm', shm, ON_OR_OFF, einval);
  const shared = params.options.shared;
  checkValue('shared', shared, ON_OR_OFF, einval);
  return {
    addresses: localAddresses('ia_params', where.split(',').filter(Boolean)),
    ...(udpPort !== undefined && { udpPort }),
    ...(mtuBytes !== undefined && { mtuBytes }),
    ...(port !== undefined && { port }),
    ...(icrcCheck !== undefined && { icrcCheck }),
    ...(shm !== undefined && { shm: shm === 'true' }),
    ...(shared !== undefined && { shared: shared === 'true' }),
  };
}
