/** The native part of softroce (providers/softroce/native), if it has been built. */
import {
  type FileMapper,
  loadAddon,
  type MemorySharer,
  type UnixSockets,
} from '../../host/index.js';
import type { GroupSockets } from '../shared/group-sockets.js';
import type { NativeChannelCalls } from '../shm/native-channels.js';

/** Arrays that a native port works on; the port keeps them alive. */
export interface NativeArrays {
  readonly rxArena: Uint8Array;
  readonly rxPackets: Uint32Array;
  readonly placements: Uint32Array;
  readonly txPackets: Uint32Array;
  readonly txSegments: Uint32Array;
  /** Counts, and the clock. */
  readonly counters: Float64Array;
}

export interface NativePortHandle extends NativeChannelCalls {
  receive(): number;
  readClock(): void;
  /** Sleeps until a datagram or an error is there, so many microseconds at most. */
  rest(mostUs: number): void;
  place(count: number): void;
  send(from: number, to: number): number;
  addRegion(bytes: Uint8Array): number;
  removeRegion(region: number): void;
  /**
   * @param channel that leads there, or -1 for UDP
   * @throws Error with the `code` ENETUNREACH where no route leads to a multicast group
   */
  addPath(gid: Uint8Array, udpPort: number, localIndex: number, channel: number): number;
  removePath(path: number): void;
  /**
   * Hears a multicast group at the interface of a local address.
   * @returns the number of the membership, used for no other
   * @throws Error with the `code` of the system; EADDRNOTAVAIL where no interface has the address
   */
  joinGroup(gid: Uint8Array, udpPort: number, localIndex: number): number;
  /** No-op for what is none. */
  leaveGroup(group: number): void;
  watch(
    onReadable: () => void,
    onWritable: () => void,
    /** @param type index in NETWORK_REPORT_TYPES
     * @param value bytes of the IP packet that was too long, errno of a refusal, or the path */
    onReport: (gid: Uint8Array, type: number, value: number, mtuBytes: number) => void,
    onChannelEnd: (channel: number, reason: string) => void,
  ): void;
  setProcessHold(alive: boolean): void;
  /** As of a PacketPort. */
  keepExitPacket(path: number, packet: Uint8Array): number;
  dropExitPacket(number: number): void;
  /**
   * From now on `allocate` returns memory that peers of this host can map.
   * @param onChange a segment was added or removed: called from the event loop
   */
  useArena(limitBytes: number, onChange: () => void): void;
  /** Zeros; undefined where the arena, or the system, has no more. */
  allocate(lengthBytes: number): ArrayBuffer | undefined;
  /** Segments of the arena; their descriptors stay the arena's. */
  segments(): readonly (readonly [segment: number, descriptor: number, bytes: number])[];
  /** Datagrams lost to a full receive buffer, as the system counts them. */
  dropped(): number;
  close(onClosed: () => void): void;
  /** As of a PacketPort. */
  release(): void;
  withdraw(path: number, destinationQpn: number): void;
}

export interface NativeAddon extends FileMapper, MemorySharer, UnixSockets, GroupSockets {
  readonly arenaBytes: number;
  /**
   * Descriptor of memory that this process has from `shareMemory`. It belongs to the memory, and is
   * valid for as long as that is held.
   * @throws Error with `code` ENOENT
   */
  memoryDescriptor(name: string): number;
  /**
   * Zeros in pages of their own, from a boundary of huge pages on, and in such pages where the
   * system has them to give; undefined where that cannot be had.
   */
  allocatePages(lengthBytes: number): ArrayBuffer | undefined;
  /**
   * @param descriptors a socket for each address, of which the port takes duplicates; empty: it
   * binds them
   * @param exactIcrc needs CAP_NET_RAW
   * @param clockOffsetUs process.hrtime() minus performance.now()
   * @throws Error with the `code` of the system and the index of the address
   */
  openPort(
    gids: Uint8Array,
    scopeIds: Uint32Array,
    udpPort: number,
    maxPacketBytes: number,
    arrays: NativeArrays,
    exactIcrc: boolean,
    clockOffsetUs: number,
    descriptors: Uint32Array,
  ): NativePortHandle;
  /**
   * Sends the messages that ports of the process keep for their exit when this signal arrives, if
   * its default action is to end the process. Nothing else changes.
   * @param signal SIGTERM, SIGINT or SIGHUP, by number
   */
  watchSignal(signal: number): void;
  /** MTU and scope id of the interface that has the address. */
  findLink(gid: Uint8Array): [mtuBytes: number, scopeId: number] | undefined;
  /** CRC-32 implementations that this machine can run, slowest first; the last one is in use. */
  crc32Variants(): string[];
  crc32(variant: number, bytes: Uint8Array): number;
  /** @param bytes BTH to pad */
  icrc(
    sourceGid: Uint8Array,
    sourcePort: number,
    destinationGid: Uint8Array,
    destinationPort: number,
    identification: number,
    bytes: Uint8Array,
  ): number;
  /** The IPv4 identification that explains the difference to the ICRC made with 0, or -1. */
  solveIdentification(difference: number, bytes: number): number;
  /** @returns how many trains were written to `out` as {first, count, segment size} */
  planTrains(
    paths: Uint32Array,
    slots: Uint32Array,
    sizes: Uint32Array,
    maxSegments: number,
    maxBytes: number,
    out: Uint32Array,
  ): number;
}

let loaded: NativeAddon | undefined;
let reason: string | undefined;

/** @returns undefined when it cannot be loaded; `nativeAddonProblem` says why */
export function loadNativeAddon(): NativeAddon | undefined {
  if (loaded || reason !== undefined) return loaded;
  const result = loadAddon('softroce-port.node');
  if ('problem' in result) reason = result.problem;
  else loaded = result.addon as NativeAddon;
  return loaded;
}

export function nativeAddonProblem(): string | undefined {
  return reason;
}
