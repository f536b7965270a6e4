/** Common parts of the two socket ports: options, counters, sizes of the shared arrays. */
import { checkValues, integer, oneOf, optional } from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/errors/einval.js';
import {
  type Device,
  type Gid,
  ipFromGid,
  isIpv4Gid,
  LOCAL_MTU_BYTES,
  type Logger,
  type PacketPort,
  PLACE,
  PORT_COUNTERS,
  RX,
  SpiError,
  TX,
  TX_SEGMENT,
} from '../../../core/spi/index.js';
import type { ChannelPort } from '../shm/channel-port.js';
import { SHM, type ShmOptions } from '../shm/shm-options.js';
import { gidsOf, PATH_MTUS, PORT_OPTIONS } from '../../hca/common/port-options.js';

/** The port of RoCEv2 (IANA; IBTA A17.3.1). */
export const ROCE_UDP_PORT = 4791;

const ICRC_CHECKS = ['recovered', 'exact'] as const;
export type IcrcCheck = (typeof ICRC_CHECKS)[number];

export interface SocketPortOptions {
  /** 1 to 64 local IP addresses, in text or as GIDs; the first one is the default. */
  readonly addresses: readonly (string | Gid)[];
  /** UDP port of both sides, 4791 unless two strangers must share a machine (tests). */
  readonly udpPort?: number;
  /** An upper limit for the path MTU: 256, 512, 1024, 2048 or 4096. */
  readonly mtuBytes?: number;
  /**
   * How the ICRC of IPv4 packets is checked, which covers a field that sockets do not show.
   * `recovered` (default): any identification that explains the ICRC and that the peer could have
   * used; damage goes unseen in at most one packet of 2^16, of a steady flow in one of 2^22.
   * `exact`: with the identification itself, seen by a raw socket; needs CAP_NET_RAW and the native
   * port, and costs a second copy of the headers. IPv6 is always exact.
   */
  readonly icrcCheck?: IcrcCheck;
  /**
   * Shares memory with other devices of this host and user: true (default, on the native port),
   * false, or limits.
   */
  readonly shm?: boolean | Partial<ShmOptions>;
  readonly logger?: Logger;
}

export const SOCKET_PORT_COUNTERS = [
  ...PORT_COUNTERS,
  /** System calls that carried packets. */
  'sentTrains',
  'receivedTrains',
  /** Datagrams lost because the receive buffer was full: of the system, or of the dgram port. */
  'droppedDatagrams',
  /** With `icrcCheck: 'exact'`: datagrams dropped because the raw socket had missed them. */
  'unseenHeaders',
  /**
   * Part of the packets received and sent: those through memory shared with a peer of this host.
   */
  'channelReceived',
  'channelSent',
  /** Packets for which such a peer has left no room, or that is gone. */
  'channelDropped',
] as const;

export type SocketPortCounters = Record<(typeof SOCKET_PORT_COUNTERS)[number], number>;

export interface SocketPort extends PacketPort {
  readonly counters: SocketPortCounters;
  /** Channels through shared memory, where the port has them. */
  readonly channels?: ChannelPort;
  /** Files as memory, where the port can do it: see `Device.mapFile`. */
  readonly mapFile?: NonNullable<Device['mapFile']>;
  /** Memory by a name, where the port can do it: see `Device.shareMemory`. */
  readonly shareMemory?: NonNullable<Device['shareMemory']>;
  /** Memory that suits the port, where it prefers some: see `Device.allocate`. */
  readonly allocate?: Device['allocate'];
  /** Sleeps until something comes, so many microseconds at most; where the port can do that. */
  readonly rest?: (mostUs: number) => void;
}

/** Capacities in packets and entries; `receive` and `send` move at most so many a call. */
export const PORT_CAPACITY = {
  RX_PACKETS: 1024,
  PLACEMENTS: 2048,
  TX_PACKETS: 1024,
  TX_SEGMENTS: 4096,
} as const;

/** Largest RoCE packet a peer may send: headers, the largest path MTU, ICRC. */
export const MAX_PACKET_BYTES = 48 + 4096 + 4;

/** The same between two of ours on one host. */
export const MAX_LOCAL_PACKET_BYTES = 48 + LOCAL_MTU_BYTES + 4;

/** @param arenaBytes of received packets */
export function allocatePortArrays(arenaBytes: number): {
  rxArena: Uint8Array;
  rxPackets: Uint32Array;
  placements: Uint32Array;
  txPackets: Uint32Array;
  txSegments: Uint32Array;
} {
  return {
    rxArena: new Uint8Array(arenaBytes),
    rxPackets: new Uint32Array(PORT_CAPACITY.RX_PACKETS * RX.WORDS),
    placements: new Uint32Array(PORT_CAPACITY.PLACEMENTS * PLACE.WORDS),
    txPackets: new Uint32Array(PORT_CAPACITY.TX_PACKETS * TX.WORDS),
    txSegments: new Uint32Array(PORT_CAPACITY.TX_SEGMENTS * TX_SEGMENT.WORDS),
  };
}

/** Kinds of the options, for the provider, too. */
export const UDP_PORT = optional(integer(1, 65535));
export const ICRC_CHECK = optional(oneOf(ICRC_CHECKS));
const SOCKET_PORTS = oneOf(['auto', 'native', 'dgram'] as const);
export const SOCKET_PORT = optional({
  ...SOCKET_PORTS,
  expected: `${SOCKET_PORTS.expected} (the number of a UDP port is udpPort)`,
});
const OPTIONS = { ...PORT_OPTIONS, udpPort: UDP_PORT, icrcCheck: ICRC_CHECK, shm: SHM };

/** @throws SpiError('EINVAL') naming the option, its value and its limits */
export function checkOptions(options: SocketPortOptions): { gids: Gid[]; udpPort: number } {
  checkValues(options, OPTIONS, einval);
  const { addresses, udpPort = ROCE_UDP_PORT } = options;
  return { gids: gidsOf(addresses), udpPort };
}

/** UDP, the longest RoCE headers and the ICRC. */
const HEADER_BYTES = 8 + 48 + 4;

/** The largest path MTU whose packets fit the link whole, within the limit that was asked for. */
export function pathMtu(linkMtuBytes: number, gid: Gid, limitBytes = 4096): number {
  const room = linkMtuBytes - HEADER_BYTES - (isIpv4Gid(gid) ? 20 : 40);
  const fitting = PATH_MTUS.filter((mtu) => mtu <= room && mtu <= limitBytes);
  const mtu = fitting.at(-1);
  if (mtu === undefined) {
    const address = ipFromGid(gid);
    throw new SpiError(
      'EINVAL',
      `the link of ${address} has an MTU of ${String(linkMtuBytes)}: no RoCE packet fits`,
    );
  }
  return mtu;
}

/** The MTU that only the loopback interface has. */
const LOOPBACK_MTU_BYTES = 65536;

/** LOCAL_MTU_BYTES when every address is the host's own, and no limit was asked for. */
export function localMtu(
  linkMtus: readonly number[],
  limitBytes: number | undefined,
): number | undefined {
  const loopback = linkMtus.every((mtu) => mtu >= LOOPBACK_MTU_BYTES);
  return loopback && limitBytes === undefined ? LOCAL_MTU_BYTES : undefined;
}
