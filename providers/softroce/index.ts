/**
 * The softroce provider (`dapl/providers/softroce`): RoCEv2 in user space over UDP 4791, wire
 * compatible with Linux rdma_rxe and with RoCE adapters, without privileges.
 */
import {
  CM,
  type DatProviderInit,
  definePlugin,
  type PacketPort,
  part,
  type ProviderInstance,
  token,
} from '../../core/spi/index.js';
import { BOOLEAN, optional } from '../../core/spi/checks/index.js';
import { PARAMETERS, parametersOf } from '../hca/common/parameters.js';
import { gidsOf, PORT_OPTIONS } from '../hca/common/port-options.js';
import type { HcaParameters } from '../hca/index.js';
import { monotonicClock } from '../host/index.js';
import { joinSharedAddress, openGroupPort } from './group-port.js';
import { localAddresses } from './local-addresses.js';
import { bindHca } from '../kit/bind-hca.js';
import type { HcaNode } from '../kit/hca-node.js';
import { softroceNode } from './node.js';
import {
  ICRC_CHECK,
  type IcrcCheck,
  ROCE_UDP_PORT,
  SOCKET_PORT,
  UDP_PORT,
} from './port-options.js';
import { optionsOf } from './provider-init.js';
import { SHM, type ShmOptions, shmOptionsOf } from './shm/shm-options.js';
import { openSocketPort } from './socket-port.js';

export { inspectSoftroce, type SoftroceAddress, type SoftroceInspection } from './inspect.js';
export type { IcrcCheck } from './port-options.js';
export { ROCE_UDP_PORT } from './port-options.js';
export type { ShmOptions } from './shm/shm-options.js';

export interface SoftroceOptions {
  /**
   * 1 to 64 local IP addresses, in text, or names of network interfaces (`eth0`), which stand for
   * the addresses that they have when this is called; the first one is the default source.
   * Addresses that no other program uses for RoCE: 127.0.0.1 and 127.0.0.2 can each be a device of
   * a process of its own.
   */
  readonly addresses: readonly string[];
  /** UDP port of both sides: 4791 (default) unless both ends are ours. */
  readonly udpPort?: number;
  /** Upper bound of the path MTU: 256, 512, 1024, 2048 or 4096; default what the link carries. */
  readonly mtuBytes?: number;
  /**
   * `auto` (default): the native port where it has been built, else node:dgram, which is slower.
   */
  readonly port?: 'auto' | 'native' | 'dgram';
  /**
   * `recovered` (default) or `exact`, which needs CAP_NET_RAW and the native port: how the ICRC of
   * IPv4 packets is checked (docs/softroce.md).
   */
  readonly icrcCheck?: IcrcCheck;
  /**
   * Whether memory is shared with other devices of this host and user, by which their connections
   * then go: true (default, where the native port is), false, or limits (docs/softroce.md).
   */
  readonly shm?: boolean | Partial<ShmOptions>;
  /**
   * Whether other programs of this user may have the same addresses, each with this option and with
   * the addresses in the same order (docs/shared.md). Needs the native port; default false.
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
const NODE = token<HcaNode>('softroce/node');

/**
 * Options that it does not take are refused when it is called. Opening fails with DatError, which
 * names the address: DAT_PORT_IN_USE, DAT_INVALID_ADDRESS (not of this machine) or
 * DAT_PRIVILEGES_VIOLATION.
 */
export const softroce = definePlugin(
  {
    name: 'softroce',
    kind: 'provider',
    sdkVersion: '1.0',
    requires: ['mad', 'cm', 'xrc'],
    provides: ['rc', 'ud', 'atomic', 'mad', 'cm', 'xrc'],
    options: OPTIONS,
  },
  (options: SoftroceOptions): ProviderInstance => {
    const { udpPort = ROCE_UDP_PORT, port = 'auto', mtuBytes, icrcCheck } = options;
    const addresses = localAddresses('one of addresses', options.addresses);
    gidsOf(addresses);
    const parameters = parametersOf(options.parameters);
    const shm = shmOptionsOf(options.shm);
    const { shared = false } = options;
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
        const name = `softroce ${addresses[0] ?? ''}`;
        const share = group?.share;
        const makeNode = (through: PacketPort): HcaNode =>
          softroceNode({ name, port: socketPort, through, logger, parameters, share });
        bindHca(registrar, socketPort, NODE, makeNode, monotonicClock);
        registrar.onOpen(
          part({ node: NODE, cm: CM }, (made) => {
            made.node.atExit((mayGoOn) => made.cm.sayGoodbye?.(mayGoOn));
            group?.serve({ ...made, logger });
          }),
        );
      },
    };
  },
);

/** Opened by a line of dat.conf (docs/registry.md). */
export const datProviderInit: DatProviderInit = (_info, iaParams) => softroce(optionsOf(iaParams));
