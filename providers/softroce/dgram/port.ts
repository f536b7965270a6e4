/**
 * The packet port over node:dgram, for machines without the native addon: slower, and deaf to part
 * of the world. It does the same job between two ports of ours, because of how the ICRC is checked:
 *
 * - IPv4: the system puts an identification of its own into each datagram, while the ICRC is made
 *   with 0. A receiver of ours does not see the header; it asks whether the ICRC fits *some*
 *   identification (identification.ts), and it does: 0. A receiver that sees the header,
 *   as the kernel's rxe and every adapter do, finds another identification there and drops the
 *   packet.
 * - IPv6 has no identification, so sending works everywhere; but datagrams with UDP checksum 0, as
 *   rxe and adapters send them, are dropped by the system before they reach us.
 */
import type { RemoteInfo, Socket } from 'node:dgram';
import {
  type Gid,
  isIpv4Gid,
  isMulticastGid,
  type Logger,
  type PacketPortHandlers,
  silentLogger,
  SpiError,
} from '../../../core/spi/index.js';
import { PathTable, RegionTable } from '../../host/index.js';
import { DgramGroups, prepareForGroups } from './groups.js';
import { DgramInbox } from './inbox.js';
import { DgramOutbox } from './outbox.js';
import { bindSocket, linkMtu } from './socket.js';
import {
  allocatePortArrays,
  checkOptions,
  pathMtu,
  PORT_CAPACITY,
  type SocketPort,
  type SocketPortCounters,
  type SocketPortOptions,
} from '../port/port-options.js';

const ARENA_BYTES = 512 << 10;

/**
 * Opens a port on every address, or on none, and says once what it cannot do.
 * @param lacking why the native port is not used, where it would have been
 * @throws SpiError EADDRINUSE, EADDRNOTAVAIL, EACCES, EINVAL
 */
export async function openDgramPort(
  options: SocketPortOptions,
  lacking?: string,
): Promise<SocketPort> {
  const { gids, udpPort } = checkOptions(options);
  if (options.icrcCheck === 'exact') {
    throw new SpiError(
      'EOPNOTSUPP',
      "icrcCheck 'exact' needs the native port: dgram has 'recovered'",
    );
  }
  const sockets: Socket[] = [];
  try {
    for (const gid of gids) sockets.push(await bindSocket(gid, udpPort));
  } catch (error) {
    for (const socket of sockets) socket.close();
    throw error;
  }
  const logger = options.logger ?? silentLogger;
  sayWhatIsLost(logger, lacking);
  return new DgramPort(sockets, gids, udpPort, options.mtuBytes, logger);
}

/** True once this process has warned. */
let hasBeenSaid = false;

/** Logs the limits of this port. If it was not chosen, the process warns even without a logger. */
function sayWhatIsLost(logger: Logger, lacking: string | undefined): void {
  const hasNoLogger = logger === silentLogger;
  if (hasBeenSaid || (hasNoLogger && lacking === undefined)) return;
  hasBeenSaid = true;
  const because = lacking === undefined ? '' : `, since the native port is not there (${lacking})`;
  const text =
    `softroce works over node:dgram${because}: slower, and of other RoCEv2 implementations it ` +
    'reaches none over IPv4 (the identification of sent packets is unknown) and hears none ' +
    'over IPv6 (datagrams without a UDP checksum are dropped)';
  if (hasNoLogger) process.emitWarning(text, { type: 'DaplWarning', code: 'DAPL_DGRAM' });
  else logger.warn(text);
}

class DgramPort implements SocketPort {
  readonly mtuBytes: number;
  readonly counters: SocketPortCounters = {
    receivedPackets: 0,
    sentPackets: 0,
    malformed: 0,
    badIcrc: 0,
    recoveredId: 0,
    sendErrors: 0,
    tooLong: 0,
    icmpUnreachable: 0,
    icmpTooBig: 0,
    sentTrains: 0,
    receivedTrains: 0,
    droppedDatagrams: 0,
    unseenHeaders: 0,
    channelReceived: 0,
    channelSent: 0,
    channelDropped: 0,
  };
  readonly rxArena: Uint8Array;
  readonly rxPackets: Uint32Array;
  readonly placements: Uint32Array;
  readonly txPackets: Uint32Array;
  readonly txSegments: Uint32Array;

  private readonly pathTable: PathTable;
  private readonly regions = new RegionTable();
  private readonly inbox: DgramInbox;
  private readonly outbox: DgramOutbox;
  private readonly groups: DgramGroups;
  private wakePending = false;
  private handlers: PacketPortHandlers | undefined;
  private closed: Promise<void> | undefined;

  constructor(
    private readonly sockets: readonly Socket[],
    readonly gids: readonly Gid[],
    udpPort: number,
    mtuLimit: number | undefined,
    logger: Logger,
  ) {
    const arrays = allocatePortArrays(ARENA_BYTES);
    this.rxArena = arrays.rxArena;
    this.rxPackets = arrays.rxPackets;
    this.placements = arrays.placements;
    this.txPackets = arrays.txPackets;
    this.txSegments = arrays.txSegments;
    this.mtuBytes = Math.min(...gids.map((gid) => pathMtu(linkMtu(gid), gid, mtuLimit)));
    this.pathTable = new PathTable(gids);
    this.inbox = new DgramInbox(udpPort, this.counters);
    this.outbox = new DgramOutbox(
      sockets,
      udpPort,
      this.txPackets,
      this.txSegments,
      this.regions,
      this.counters,
      {
        onWritable: () => {
          if (!this.closed) this.handlers?.onWritable();
        },
        onRefused: (gid, code, datagramBytes) => {
          this.onRefused(gid, code, datagramBytes);
        },
      },
    );
    const onDatagram = (data: Uint8Array, from: RemoteInfo, index: number, to: Gid): void => {
      if (this.inbox.put(data, from, index, to)) this.wake();
    };
    this.groups = new DgramGroups(gids, udpPort, onDatagram, logger);
    sockets.forEach((socket, index) => {
      const local = gids[index] as Gid;
      prepareForGroups(socket, local);
      socket.on('message', (data, from) => onDatagram(data, from, index, local));
      socket.on('error', (error) => logger.warn(`UDP socket: ${error.message}`));
      socket.unref();
    });
  }

  private onRefused(gid: Gid, code: string, datagramBytes: number): void {
    const tooLong = code === 'EMSGSIZE';
    if (tooLong) this.counters.tooLong++;
    if (this.closed) return;
    const packetBytes = datagramBytes + 8 + (isIpv4Gid(gid) ? 20 : 40);
    this.handlers?.onReport(
      tooLong
        ? { type: 'too-long', gid, packetBytes, mtuBytes: 0 }
        : { type: 'refused', gid, code },
    );
  }

  receive(): number {
    const packets = this.inbox.take(this.rxArena, this.rxPackets);
    if (!this.inbox.isEmpty) this.wake();
    return packets;
  }

  place(count: number): void {
    const { PLACEMENTS } = PORT_CAPACITY;
    if (count > PLACEMENTS) {
      throw new RangeError(`${String(count)} placements, at most ${String(PLACEMENTS)}`);
    }
    this.regions.place(this.placements, count, this.rxArena);
  }

  send(from: number, to: number): number {
    if (to > PORT_CAPACITY.TX_PACKETS) {
      throw new RangeError(`${String(to)} packets, at most ${String(PORT_CAPACITY.TX_PACKETS)}`);
    }
    return this.closed ? to : this.outbox.send(from, to);
  }

  addRegion(memory: ArrayBufferLike, byteOffset: number, byteLength: number): number {
    return this.regions.add(memory, byteOffset, byteLength);
  }

  removeRegion(region: number): void {
    if (!this.closed) this.regions.remove(region);
  }

  addPath(gid: Gid, localGidIndex: number): number {
    return this.pathTable.add(gid, localGidIndex, () => {
      if (isMulticastGid(gid)) this.groups.checkRoute(gid, localGidIndex);
      return this.outbox.addPath(gid, this.gids[localGidIndex] ?? gid, localGidIndex);
    });
  }

  removePath(path: number): void {
    if (!this.closed && this.pathTable.remove(path)) this.outbox.removePath(path);
  }

  joinGroup(group: Gid, localGidIndex: number): number {
    if (this.closed) throw new RangeError('the port is closed');
    return this.groups.join(group, localGidIndex);
  }

  leaveGroup(group: number): void {
    this.groups.leave(group);
  }

  watch(handlers: PacketPortHandlers): void {
    this.handlers = handlers;
    if (!this.inbox.isEmpty) this.wake();
  }

  setProcessHold(alive: boolean): void {
    if (this.closed) return;
    for (const socket of this.sockets) {
      if (alive) socket.ref();
      else socket.unref();
    }
    this.groups.setProcessHold(alive);
  }

  close(): Promise<void> {
    if (this.closed) return this.closed;
    this.inbox.clear();
    this.groups.close();
    this.closed = Promise.all(
      this.sockets.map((socket) => new Promise<void>((resolve) => socket.close(resolve))),
    ).then(() => this.regions.clear());
    return this.closed;
  }

  /** One wake-up for all that arrives in the same turn of the event loop. */
  private wake(): void {
    if (this.wakePending || !this.handlers) return;
    this.wakePending = true;
    setImmediate(() => {
      this.wakePending = false;
      if (!this.closed && !this.inbox.isEmpty) this.handlers?.onReadable();
    });
  }
}
