/**
 * The packet port over the native addon: trains by GSO and GRO, ICRC by SIMD, payload gathered from
 * and placed into registered memory without passing through JavaScript.
 */
import { constants } from 'node:os';
import { getSystemErrorName } from 'node:util';
import { isMainThread } from 'node:worker_threads';
import {
  CHANNEL_MTU_BYTES,
  type FileMapping,
  type Gid,
  ipFromGid,
  isMulticastGid,
  type Logger,
  NETWORK_REPORT_TYPES,
  type NetworkReport,
  type PacketPortHandlers,
  type PeerDevice,
  silentLogger,
  SpiError,
} from '../../../core/spi/index.js';
import { slotOfQpn } from '../../../core/spi/internal/index.js';
import { checkRegion, clockOffsetUs, mapFile, PathTable, shareMemory } from '../../host/index.js';
import { Meetings } from '../shm/meetings.js';
import { NativeChannels } from '../shm/native-channels.js';
import { type ShmOptions, shmOptionsOf } from '../shm/shm-options.js';
import { bindError, groupError } from './port-errors.js';
import {
  loadNativeAddon,
  type NativeAddon,
  nativeAddonProblem,
  type NativeArrays,
  type NativePortHandle,
} from './native-addon.js';
import {
  allocatePortArrays,
  checkOptions,
  localMtu,
  MAX_LOCAL_PACKET_BYTES,
  MAX_PACKET_BYTES,
  pathMtu,
  ROCE_UDP_PORT,
  type SocketPort,
  type SocketPortCounters,
  type SocketPortOptions,
} from './port-options.js';

/** Signals whose default action ends the process, and by which the last packets leave. */
const EXIT_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/**
 * Sends the exit packets of all ports on those signals that the application does not listen to. A
 * listener that it adds later replaces this. A worker thread cannot see the listeners and leaves
 * this to the main thread.
 */
function watchSignals(addon: Pick<NativeAddon, 'watchSignal'>): void {
  if (!isMainThread) return;
  for (const signal of EXIT_SIGNALS) {
    if (process.listenerCount(signal) === 0) addon.watchSignal(constants.signals[signal]);
  }
}

/** The port's part of an address that processes share. */
export interface PortGroup {
  /** The process's number among them: see `DeviceShare`. */
  readonly slot: number;
  /**
   * Its sockets, in the order of the addresses and bound to them (`bindGroupSocket`). The port
   * takes duplicates: these stay the caller's.
   */
  readonly descriptors: readonly number[];
  /** The sockets are read no more. */
  readonly onClosed?: () => void;
}

export interface NativePortOptions extends SocketPortOptions {
  /** Default: the addresses are bound for this port alone. */
  readonly group?: PortGroup;
}

/**
 * Opens a port on every address, or on none.
 * @throws SpiError EADDRINUSE, EADDRNOTAVAIL, EACCES, EINVAL; EOPNOTSUPP without the addon
 */
export function openNativePort(options: NativePortOptions): SocketPort {
  const addon = loadNativeAddon();
  if (!addon) {
    throw new SpiError('EOPNOTSUPP', `the native port is not there: ${nativeAddonProblem() ?? ''}`);
  }
  return new NativePort(addon, options);
}

/** Shorter memory is copied to peers of this host: that costs less than a mapping. */
const LEAST_ARENA_BYTES = 64 << 10;
/** Memory from this size on is asked for in huge pages: what goes by pages has fewer to look up. */
const HUGE_PAGE_BYTES = 2 << 20;

class NativePort implements SocketPort {
  readonly gids: readonly Gid[];
  readonly mtuBytes: number;
  readonly localMtuBytes?: number;
  readonly channelMtuBytes?: number;
  readonly channels?: NativeChannels;
  private readonly meetings?: Meetings;
  readonly counters: NativeCounters;
  readonly clockUs: Float64Array;
  readonly rxArena: Uint8Array;
  readonly rxPackets: Uint32Array;
  readonly placements: Uint32Array;
  readonly txPackets: Uint32Array;
  readonly txSegments: Uint32Array;

  private readonly addon: NativeAddon;
  private readonly native: NativePortHandle;
  private readonly udpPort: number;
  private readonly paths: PathTable;
  private readonly logger: Logger;
  private saidSegmentationOff = false;
  private closed: Promise<void> | undefined;
  private readonly onClosed: (() => void) | undefined;

  constructor(addon: NativeAddon, options: NativePortOptions) {
    const { gids, udpPort } = checkOptions(options);
    const links = gids.map((gid) => addon.findLink(gid));
    const arrays = allocatePortArrays(addon.arenaBytes);
    const words = new Float64Array(NativeCounters.WORDS);
    // An address that no interface lists may still be a local one; if not, opening says so.
    const linkMtus = links.map((link) => link?.[0] ?? 1500);
    const mtus = gids.map((gid, i) => pathMtu(linkMtus[i] ?? 1500, gid, options.mtuBytes));
    const local = localMtu(linkMtus, options.mtuBytes);
    if (local !== undefined) this.localMtuBytes = local;
    this.gids = gids;
    this.mtuBytes = Math.min(...mtus);
    this.addon = addon;
    this.udpPort = udpPort;
    this.onClosed = options.group?.onClosed;
    this.paths = new PathTable(gids);
    this.logger = options.logger ?? silentLogger;
    this.rxArena = arrays.rxArena;
    this.rxPackets = arrays.rxPackets;
    this.placements = arrays.placements;
    this.txPackets = arrays.txPackets;
    this.txSegments = arrays.txSegments;
    const maxPacketBytes = local === undefined ? MAX_PACKET_BYTES : MAX_LOCAL_PACKET_BYTES;
    this.clockUs = words.subarray(NativeCounters.CLOCK, NativeCounters.WORDS);
    const shared = { ...arrays, counters: words };
    this.native = openHandle(addon, gids, links, options, maxPacketBytes, shared);
    this.counters = new NativeCounters(words, this.native);
    // With `mtuBytes`, longer packets are not wanted: no channels of shared memory then.
    const shm = options.mtuBytes === undefined ? shmOptionsOf(options.shm) : undefined;
    if (shm !== undefined) {
      this.channels = new NativeChannels(this.native, shm);
      this.meetings = this.meetingsOf(this.channels, shm, options.group?.slot);
      this.channelMtuBytes = CHANNEL_MTU_BYTES;
    }
  }

  private meetingsOf(
    channels: NativeChannels,
    { arenaBytes }: ShmOptions,
    slot: number | undefined,
  ): Meetings {
    const { addon, native, gids, udpPort, logger } = this;
    const meetings = new Meetings({
      sockets: addon,
      channels,
      self: { slot, gids, udpPort },
      logger,
      segments: () =>
        native.segments().map(([segment, descriptor, bytes]) => ({ segment, descriptor, bytes })),
      startTimer: (milliseconds, onTimeout) => {
        const timer = setTimeout(onTimeout, milliseconds).unref();
        return () => clearTimeout(timer);
      },
    });
    native.useArena(arenaBytes, () => meetings.announce());
    return meetings;
  }

  listen(nodeGuid: bigint): boolean {
    return this.meetings?.listen(nodeGuid) ?? false;
  }

  meet(peer: PeerDevice, done: (met: boolean) => void): void {
    if (this.meetings) this.meetings.meet(peer, done);
    else done(false);
  }

  receive(): number {
    return this.native.receive();
  }

  readClock(): void {
    this.native.readClock();
  }

  place(count: number): void {
    this.native.place(count);
  }

  release(): void {
    this.native.release();
  }

  withdraw(path: number, destinationQpn: number): void {
    this.native.withdraw(path, destinationQpn);
  }

  send(from: number, to: number): number {
    const next = this.native.send(from, to);
    if (this.counters.segmentationOff && !this.saidSegmentationOff) {
      this.saidSegmentationOff = true;
      this.logger.warn('UDP segmentation is not available: every packet is sent alone, slower');
    }
    return next;
  }

  rest(mostUs: number): void {
    this.native.rest(mostUs);
  }

  allocate(lengthBytes: number): ArrayBuffer {
    const shared = lengthBytes < LEAST_ARENA_BYTES ? undefined : this.native.allocate(lengthBytes);
    if (shared) return shared;
    const pages = lengthBytes < HUGE_PAGE_BYTES ? undefined : this.addon.allocatePages(lengthBytes);
    return pages ?? new ArrayBuffer(lengthBytes);
  }

  mapFile(file: FileMapping): Uint8Array {
    return mapFile(this.addon, file);
  }

  shareMemory(name: string, lengthBytes: number): ArrayBuffer {
    return shareMemory(this.addon, name, lengthBytes);
  }

  addRegion(memory: ArrayBufferLike, byteOffset: number, byteLength: number): number {
    return this.native.addRegion(checkRegion(memory, byteOffset, byteLength));
  }

  removeRegion(region: number): void {
    this.native.removeRegion(region);
  }

  addPath(gid: Gid, localGidIndex: number, mtuBytes = this.mtuBytes, destinationQpn = 0): number {
    const { native, udpPort } = this;
    const overChannel = mtuBytes === CHANNEL_MTU_BYTES;
    // A path over a channel ends with it: those of a later one are others.
    const channel = overChannel ? native.channelTo(gid, udpPort, slotOfQpn(destinationQpn)) : -1;
    if (overChannel && channel < 0) throw new RangeError('no channel leads there');
    const kind = overChannel ? `channel ${channel}` : '';
    const create = (): number => {
      try {
        return native.addPath(gid, udpPort, localGidIndex, channel);
      } catch (error) {
        throw isMulticastGid(gid) ? this.groupError(error, gid, localGidIndex) : error;
      }
    };
    return this.paths.add(gid, localGidIndex, create, kind);
  }

  removePath(path: number): void {
    if (!this.closed && this.paths.remove(path)) this.native.removePath(path);
  }

  /** @throws RangeError when there is no such address; SpiError as `groupError` */
  joinGroup(group: Gid, localGidIndex: number): number {
    try {
      return this.native.joinGroup(group, this.udpPort, localGidIndex);
    } catch (error) {
      throw this.groupError(error, group, localGidIndex);
    }
  }

  leaveGroup(group: number): void {
    this.native.leaveGroup(group);
  }

  /**
   * Adds the group's address to an error of the system. A RangeError is returned unchanged: the
   * call is one that the contract forbids.
   */
  private groupError(error: unknown, group: Gid, localGidIndex: number): unknown {
    const local = this.gids[localGidIndex];
    if (error instanceof RangeError || !local) return error;
    return groupError(error, { group, local, udpPort: this.udpPort });
  }

  keepExitPacket(path: number, packet: Uint8Array): number {
    const number = this.native.keepExitPacket(path, packet);
    watchSignals(this.addon);
    return number;
  }

  dropExitPacket(number: number): void {
    this.native.dropExitPacket(number);
  }

  watch(handlers: PacketPortHandlers): void {
    this.native.watch(
      () => handlers.onReadable(),
      () => handlers.onWritable(),
      (gid, type, value, mtuBytes) => {
        const report = reportOf(gid, type, value, mtuBytes);
        if (report) handlers.onReport(report);
      },
      (channel, reason) => this.channels?.ended(channel, reason),
    );
  }

  setProcessHold(alive: boolean): void {
    this.native.setProcessHold(alive);
  }

  close(): Promise<void> {
    this.closed ??= new Promise((resolve) => {
      this.counters.freeze();
      this.meetings?.close();
      this.native.close(() => {
        this.onClosed?.();
        resolve();
      });
    });
    return this.closed;
  }
}

function reportOf(
  gid: Gid,
  number: number,
  value: number,
  mtuBytes: number,
): NetworkReport | undefined {
  const type = NETWORK_REPORT_TYPES[number];
  switch (type) {
    case undefined:
      return undefined;
    case 'too-big':
      return { type, gid, mtuBytes };
    case 'too-long':
      return { type, gid, packetBytes: value, mtuBytes };
    case 'refused':
      return { type, gid, code: getSystemErrorName(-value) };
    case 'peer-gone':
      return { type, gid, path: value };
    default:
      return { type, gid };
  }
}

function openHandle(
  addon: NativeAddon,
  gids: readonly Gid[],
  links: readonly ([number, number] | undefined)[],
  options: NativePortOptions,
  maxPacketBytes: number,
  arrays: NativeArrays,
): NativePortHandle {
  const { udpPort = ROCE_UDP_PORT, icrcCheck, group } = options;
  const exact = icrcCheck === 'exact';
  const gidBytes = new Uint8Array(16 * gids.length);
  gids.forEach((gid, i) => gidBytes.set(gid, 16 * i));
  const scopes = Uint32Array.from(links, (link) => link?.[1] ?? 0);
  const sockets = Uint32Array.from(group?.descriptors ?? []);
  try {
    const clock = clockOffsetUs();
    return addon.openPort(gidBytes, scopes, udpPort, maxPacketBytes, arrays, exact, clock, sockets);
  } catch (error) {
    const gid = gids[(error as { addressIndex?: number }).addressIndex ?? 0];
    const address = gid ? ipFromGid(gid) : '';
    if (group && codeOf(error) === 'EINVAL') throw wrongSocket(error, address, udpPort);
    throw exact && codeOf(error) === 'EPERM'
      ? noRawSocket(error, address)
      : bindError(error, address, udpPort);
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as { code?: string }).code;
}

function wrongSocket(cause: unknown, address: string, udpPort: number): SpiError {
  const message = `no socket bound to ${address}, UDP port ${udpPort}, was given for it`;
  return new SpiError('EINVAL', message, { cause });
}

const RAW_SOCKET_HINT =
  'run as root, give the Node binary CAP_NET_RAW (setcap cap_net_raw+ep), ' +
  "or choose icrcCheck: 'recovered'";

function noRawSocket(cause: unknown, address: string): SpiError {
  return new SpiError('EPERM', `icrcCheck 'exact' on ${address} needs a raw socket`, {
    cause,
    hint: RAW_SOCKET_HINT,
  });
}

/** Views on the words that the native side counts in (port_memory.h: Counter). */
class NativeCounters implements SocketPortCounters {
  static readonly CLOCK = 16;
  static readonly WORDS = 17;
  private readonly words: Float64Array;
  private dropped: () => number;

  constructor(words: Float64Array, native: NativePortHandle) {
    this.words = words;
    this.dropped = () => native.dropped();
  }

  get receivedPackets(): number {
    return this.words[0] ?? 0;
  }
  get sentPackets(): number {
    return this.words[1] ?? 0;
  }
  get malformed(): number {
    return this.words[2] ?? 0;
  }
  get badIcrc(): number {
    return this.words[3] ?? 0;
  }
  get recoveredId(): number {
    return this.words[4] ?? 0;
  }
  get sendErrors(): number {
    return this.words[5] ?? 0;
  }
  get sentTrains(): number {
    return this.words[6] ?? 0;
  }
  get receivedTrains(): number {
    return this.words[7] ?? 0;
  }
  get segmentationOff(): boolean {
    return this.words[8] !== 0;
  }
  get unseenHeaders(): number {
    return this.words[9] ?? 0;
  }
  get tooLong(): number {
    return this.words[10] ?? 0;
  }
  get icmpUnreachable(): number {
    return this.words[11] ?? 0;
  }
  get icmpTooBig(): number {
    return this.words[12] ?? 0;
  }
  get channelReceived(): number {
    return this.words[13] ?? 0;
  }
  get channelSent(): number {
    return this.words[14] ?? 0;
  }
  get channelDropped(): number {
    return this.words[15] ?? 0;
  }
  get droppedDatagrams(): number {
    return this.dropped();
  }

  /** The system's count goes with the sockets. */
  freeze(): void {
    const last = this.dropped();
    this.dropped = () => last;
  }
}
