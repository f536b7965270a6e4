/**
 * The packet port over node:dgram, for machines without the native addon: slower, and deaf to part
 * of the world. It does the same job between two ports of ours, because of how the ICRC is checked:
 *
 * - IPv4: the system puts an identification of its own into each datagram, while the ICRC is made
 *   with 0. A receiver of ours does not see the header; it asks whether the ICRC fits *some*
 *   identification (wire facts 1.7.4), and it does: 0. A receiver that sees the header, as the
 *   kernel's rxe and every adapter do, finds another identification there and drops the packet.
 * - IPv6 has no identification, so sending works everywhere; but datagrams with UDP checksum 0, as
 *   rxe and adapters send them, are dropped by the system before they reach us.
 */
import type { RemoteInfo, Socket } from 'node:dgram';
import { createSocket } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import type { Gid, Logger, PacketPortHandlers } from '../../core/spi/index.js';
import {
  PLACE,
  RX,
  RxFlags,
  TX,
  TX_SEGMENT,
  gidFromIp,
  gidWords,
  ipFromGid,
  isIpv4Gid,
  silentLogger,
} from '../../core/spi/index.js';
import type { Endpoint } from './icrc.js';
import { BTH_BYTES, ICRC_BYTES, headerCrc, icrcOf, solveIdentification } from './icrc.js';
import { PathTable } from './path-table.js';
import type { SocketPort, SocketPortCounters, SocketPortOptions } from './port-options.js';
import {
  PORT_CAPACITY,
  allocatePortArrays,
  bindError,
  checkOptions,
  checkRegion,
  pathMtu,
} from './port-options.js';

const BUFFER_BYTES = 4 << 20;
const ARENA_BYTES = 512 << 10;
/** Received datagrams that wait for `receive`, at most; more are dropped and counted. */
const MAX_WAITING = 1024;
/** Datagrams handed to the system and not yet taken, at most. */
const MAX_IN_FLIGHT = 256;
const MAX_PACKET_BYTES = 48 + 4096 + ICRC_BYTES;
const MAX_SENDERS = 1024;

interface Waiting {
  readonly data: Uint8Array;
  readonly sender: Sender;
}

/** Who a datagram comes from and to, with the last header CRC made for them. */
interface Sender {
  readonly source: Endpoint;
  readonly localIndex: number;
  bytes: number;
  crc: number;
}

interface Path {
  readonly gid: Gid;
  readonly address: string;
  readonly localIndex: number;
  bytes: number;
  crc: number;
}

/**
 * Opens a port on every address, or on none, and says once what it cannot do.
 * @throws SpiError EADDRINUSE, EADDRNOTAVAIL, EACCES, EINVAL
 */
export async function openDgramPort(options: SocketPortOptions): Promise<SocketPort> {
  const { gids, udpPort } = checkOptions(options);
  const sockets: Socket[] = [];
  try {
    for (const gid of gids) sockets.push(await bindSocket(gid, udpPort));
  } catch (error) {
    for (const socket of sockets) socket.close();
    throw error;
  }
  const logger = options.logger ?? silentLogger;
  logger.warn(
    'softroce works over node:dgram: slower, and of other RoCEv2 implementations it ' +
      'reaches none over IPv4 (the identification of sent packets is unknown) and hears none ' +
      'over IPv6 (datagrams without a UDP checksum are dropped)',
  );
  return new DgramPort(sockets, gids, udpPort, options.mtuBytes, logger);
}

function bindSocket(gid: Gid, udpPort: number): Promise<Socket> {
  const address = scopedAddress(gid, gid);
  const ipv6 = !isIpv4Gid(gid);
  const socket = createSocket({
    type: ipv6 ? 'udp6' : 'udp4',
    ipv6Only: ipv6,
    recvBufferSize: BUFFER_BYTES,
    sendBufferSize: BUFFER_BYTES,
    // Addresses need no look-up, which would put each datagram off to a later tick.
    lookup: (host, _options, done) => done(null, host, ipv6 ? 6 : 4),
  });
  return new Promise((resolve, reject) => {
    socket.once('error', (error) => {
      socket.close();
      reject(bindError(error, ipFromGid(gid), udpPort));
    });
    socket.bind({ address, port: udpPort, exclusive: true }, () => {
      socket.removeAllListeners('error');
      resolve(socket);
    });
  });
}

/** An address in text; a link-local one with the interface of the local address. */
function scopedAddress(gid: Gid, local: Gid): string {
  const text = ipFromGid(gid);
  if (gid[0] !== 0xfe || ((gid[1] ?? 0) & 0xc0) !== 0x80) return text;
  return `${text}%${interfaceOf(local)?.name ?? ''}`;
}

function interfaceOf(gid: Gid): { name: string; internal: boolean } | undefined {
  const address = ipFromGid(gid);
  if (address.startsWith('127.')) return { name: 'lo', internal: true };
  for (const [name, entries] of Object.entries(networkInterfaces())) {
    const entry = entries?.find((candidate) => candidate.address === address);
    if (entry) return { name, internal: entry.internal };
  }
  return undefined;
}

class DgramPort implements SocketPort {
  readonly kind = 'dgram';
  readonly mtuBytes: number;
  readonly counters: SocketPortCounters = {
    receivedPackets: 0,
    sentPackets: 0,
    malformed: 0,
    badIcrc: 0,
    recoveredId: 0,
    sendErrors: 0,
    sentTrains: 0,
    receivedTrains: 0,
    droppedDatagrams: 0,
  };
  readonly rxArena: Uint8Array;
  readonly rxPackets: Uint32Array;
  readonly placements: Uint32Array;
  readonly txPackets: Uint32Array;
  readonly txSegments: Uint32Array;

  readonly #txHeaders: Uint8Array;
  readonly #pathTable: PathTable;
  readonly #paths: (Path | undefined)[] = [];
  readonly #regions: (Uint8Array | undefined)[] = [];
  readonly #senders = new Map<string, Sender>();
  #waiting: Waiting[] = [];
  #inFlight = 0;
  #refused = false;
  #wakePending = false;
  #handlers: PacketPortHandlers | undefined;
  #closed: Promise<void> | undefined;

  constructor(
    private readonly sockets: readonly Socket[],
    readonly gids: readonly Gid[],
    private readonly udpPort: number,
    mtuLimit: number | undefined,
    private readonly logger: Logger,
  ) {
    const arrays = allocatePortArrays(ARENA_BYTES);
    this.rxArena = arrays.rxArena;
    this.rxPackets = arrays.rxPackets;
    this.placements = arrays.placements;
    this.txPackets = arrays.txPackets;
    this.txSegments = arrays.txSegments;
    this.#txHeaders = new Uint8Array(arrays.txPackets.buffer);
    this.#pathTable = new PathTable(gids);
    // Node does not tell an interface's MTU: loopback has room for all, Ethernet at least 1500.
    const links = gids.map((gid) => (interfaceOf(gid)?.internal ? 65536 : 1500));
    this.mtuBytes = Math.min(
      ...gids.map((gid, i) => pathMtu(links[i] ?? 1500, gid, mtuLimit ?? 4096)),
    );
    sockets.forEach((socket, index) => {
      socket.on('message', (data, from) => this.#onMessage(data, from, index));
      socket.on('error', (error) => this.logger.warn(`UDP socket: ${error.message}`));
      socket.unref();
    });
  }

  receive(): number {
    let packets = 0;
    let used = 0;
    let taken = 0;
    for (const { data, sender } of this.#waiting) {
      if (packets === PORT_CAPACITY.RX_PACKETS || used + data.length > ARENA_BYTES) break;
      taken++;
      this.rxArena.set(data, used);
      const flags = this.#check(used, data.length, sender);
      if (flags < 0) continue;
      this.#describe(packets++, used, data.length, sender, flags);
      used += (data.length + 7) & ~7;
    }
    this.#waiting = taken === this.#waiting.length ? [] : this.#waiting.slice(taken);
    if (this.#waiting.length > 0) this.#wake();
    this.counters.receivedPackets += packets;
    return packets;
  }

  place(count: number): void {
    if (count > PORT_CAPACITY.PLACEMENTS) {
      throw new RangeError(
        `${String(count)} placements, at most ${String(PORT_CAPACITY.PLACEMENTS)}`,
      );
    }
    const words = this.placements;
    for (let i = 0; i < count; i++) {
      const at = i * PLACE.WORDS;
      const source = word(words, at + PLACE.SOURCE);
      const length = word(words, at + PLACE.LENGTH);
      const target = this.#resolve(words, at + PLACE.REGION, at + PLACE.OFFSET_LO, length);
      if (!target || source + length > ARENA_BYTES) {
        throw new RangeError(`placement ${String(i)} is out of bounds`);
      }
      target.set(this.rxArena.subarray(source, source + length));
    }
  }

  send(from: number, to: number): number {
    if (this.#closed) return to;
    for (let i = from; i < to; i++) {
      if (this.#inFlight >= MAX_IN_FLIGHT) {
        this.#refused = true;
        return i;
      }
      this.#sendPacket(i);
    }
    return to;
  }

  addRegion(memory: ArrayBufferLike, byteOffset: number, byteLength: number): number {
    const region = checkRegion(memory, byteOffset, byteLength);
    const free = this.#regions.indexOf(undefined);
    if (free < 0) return this.#regions.push(region) - 1;
    this.#regions[free] = region;
    return free;
  }

  removeRegion(region: number): void {
    if (this.#closed) return;
    if (!this.#regions[region]) throw new RangeError(`no region ${String(region)}`);
    this.#regions[region] = undefined;
  }

  addPath(gid: Gid, localGidIndex: number): number {
    return this.#pathTable.add(gid, localGidIndex, () => {
      const local = this.gids[localGidIndex] ?? gid;
      const address = scopedAddress(gid, local);
      const path: Path = { gid, address, localIndex: localGidIndex, bytes: 0, crc: 0 };
      const free = this.#paths.indexOf(undefined);
      if (free < 0) return this.#paths.push(path) - 1;
      this.#paths[free] = path;
      return free;
    });
  }

  removePath(path: number): void {
    if (this.#pathTable.remove(path)) this.#paths[path] = undefined;
  }

  watch(handlers: PacketPortHandlers): void {
    this.#handlers = handlers;
    if (this.#waiting.length > 0) this.#wake();
  }

  setKeepAlive(alive: boolean): void {
    if (this.#closed) return;
    for (const socket of this.sockets)
      if (alive) socket.ref();
      else socket.unref();
  }

  close(): Promise<void> {
    this.#closed ??= Promise.all(
      this.sockets.map((socket) => new Promise<void>((resolve) => socket.close(resolve))),
    ).then(() => {
      this.#waiting = [];
      this.#regions.length = 0;
    });
    return this.#closed;
  }

  #onMessage(data: Uint8Array, from: RemoteInfo, localIndex: number): void {
    const misshapen = data.length < BTH_BYTES + ICRC_BYTES || data.length % 4 !== 0;
    if (misshapen || data.length > MAX_PACKET_BYTES) {
      this.counters.malformed++;
      return;
    }
    if (this.#waiting.length === MAX_WAITING) {
      this.counters.droppedDatagrams++;
      return;
    }
    this.#waiting.push({ data, sender: this.#senderOf(from, localIndex) });
    this.counters.receivedTrains++;
    this.#wake();
  }

  /** One wake-up for all that arrives in the same turn of the event loop. */
  #wake(): void {
    if (this.#wakePending || !this.#handlers) return;
    this.#wakePending = true;
    setImmediate(() => {
      this.#wakePending = false;
      if (!this.#closed && this.#waiting.length > 0) this.#handlers?.onReadable();
    });
  }

  #senderOf(from: RemoteInfo, localIndex: number): Sender {
    const key = `${String(localIndex)} ${String(from.port)} ${from.address}`;
    let sender = this.#senders.get(key);
    if (!sender) {
      if (this.#senders.size === MAX_SENDERS) this.#senders.clear();
      const gid = gidFromIp(from.address.replace(/%.*/, ''));
      sender = { source: { gid, port: from.port }, localIndex, bytes: 0, crc: 0 };
      this.#senders.set(key, sender);
    }
    return sender;
  }

  /** @returns RxFlags of a packet in the arena, or -1 when its ICRC is wrong */
  #check(offset: number, bytes: number, sender: Sender): number {
    const gid = this.gids[sender.localIndex] ?? sender.source.gid;
    if (sender.bytes !== bytes) {
      sender.bytes = bytes;
      sender.crc = headerCrc(sender.source, { gid, port: this.udpPort }, bytes);
    }
    const end = offset + bytes - ICRC_BYTES;
    const made = icrcOf(sender.crc, this.rxArena.subarray(offset, end));
    const difference = (made ^ readLittleEndian(this.rxArena, end)) >>> 0;
    const family = isIpv4Gid(gid) ? 0 : RxFlags.IPV6;
    if (difference === 0) return family;
    if (family !== 0 || solveIdentification(difference, bytes - ICRC_BYTES) < 0) {
      this.counters.badIcrc++;
      return -1;
    }
    this.counters.recoveredId++;
    return RxFlags.RECOVERED_ID;
  }

  #describe(index: number, offset: number, bytes: number, sender: Sender, flags: number): void {
    const words = this.rxPackets;
    const at = index * RX.WORDS;
    words[at + RX.OFFSET] = offset;
    words[at + RX.LENGTH] = bytes - ICRC_BYTES;
    words[at + RX.FLAGS] = flags;
    words[at + RX.LOCAL_GID_INDEX] = sender.localIndex;
    words.set(gidWords(sender.source.gid), at + RX.SOURCE_GID);
    words[at + RX.SOURCE_PORT] = sender.source.port;
  }

  #sendPacket(index: number): void {
    const at = index * TX.WORDS;
    const path = this.#paths[word(this.txPackets, at + TX.PATH)];
    const packet = path && this.#assemble(at);
    if (!packet) {
      throw new RangeError(
        `packet ${String(index)} is not valid: path, header length, segments or size`,
      );
    }
    if (path.bytes !== packet.length) {
      const source = this.gids[path.localIndex] ?? path.gid;
      path.bytes = packet.length;
      path.crc = headerCrc(
        { gid: source, port: this.udpPort },
        { gid: path.gid, port: this.udpPort },
        packet.length,
      );
    }
    const end = packet.length - ICRC_BYTES;
    const icrc = icrcOf(path.crc, packet.subarray(0, end));
    new DataView(packet.buffer, packet.byteOffset).setUint32(end, icrc, true);
    this.#inFlight++;
    this.sockets[path.localIndex]?.send(packet, this.udpPort, path.address, (error) =>
      this.#onSent(error, path.gid),
    );
  }

  /** Headers, payload and pad, with room for the ICRC. */
  #assemble(at: number): Uint8Array | undefined {
    const headerBytes = word(this.txPackets, at + TX.HEADER_LENGTH);
    const first = word(this.txPackets, at + TX.FIRST_SEGMENT);
    const count = word(this.txPackets, at + TX.SEGMENT_COUNT);
    if (headerBytes < BTH_BYTES || headerBytes > 48 || headerBytes % 4 !== 0) return undefined;
    if (first + count > PORT_CAPACITY.TX_SEGMENTS) return undefined;
    const header = (at + TX.HEADER) * 4;
    let bytes = headerBytes + (((this.#txHeaders[header + 1] ?? 0) >> 4) & 3) + ICRC_BYTES;
    for (let i = first; i < first + count; i++) {
      bytes += word(this.txSegments, i * TX_SEGMENT.WORDS + TX_SEGMENT.LENGTH);
    }
    if (bytes > 65507) return undefined;
    const packet = new Uint8Array(bytes);
    packet.set(this.#txHeaders.subarray(header, header + headerBytes));
    let end = headerBytes;
    for (let i = first; i < first + count; i++) {
      const entry = i * TX_SEGMENT.WORDS;
      const length = word(this.txSegments, entry + TX_SEGMENT.LENGTH);
      const { REGION, OFFSET_LO } = TX_SEGMENT;
      const source = this.#resolve(this.txSegments, entry + REGION, entry + OFFSET_LO, length);
      if (!source) return undefined;
      packet.set(source, end);
      end += length;
    }
    return packet;
  }

  #onSent(error: Error | null, gid: Gid): void {
    this.#inFlight--;
    if (!error) {
      this.counters.sentPackets++;
      this.counters.sentTrains++;
    } else {
      this.counters.sendErrors++;
      const { code } = error as { code?: string };
      if (code === 'EHOSTUNREACH' || code === 'ENETUNREACH' || code === 'ECONNREFUSED') {
        if (!this.#closed) this.#handlers?.onUnreachable(gid);
      }
    }
    if (this.#refused && this.#inFlight <= MAX_IN_FLIGHT / 2) {
      this.#refused = false;
      if (!this.#closed) this.#handlers?.onWritable();
    }
  }

  /** The bytes of a range given by region number and 64-bit offset, if it lies in the region. */
  #resolve(
    words: Uint32Array,
    regionAt: number,
    offsetAt: number,
    length: number,
  ): Uint8Array | undefined {
    const region = this.#regions[word(words, regionAt)];
    const offset = word(words, offsetAt) + word(words, offsetAt + 1) * 2 ** 32;
    if (!region || offset + length > region.length) return undefined;
    return region.subarray(offset, offset + length);
  }
}

function word(words: Uint32Array, at: number): number {
  return words[at] ?? 0;
}

function readLittleEndian(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(at, true);
}
