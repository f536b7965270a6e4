/**
 * Sockets of one address that share it, as the system has them: each has a place, which is the
 * order of binding; a program says to whose place a packet goes; and when a socket is closed, the
 * last one moves into its place (net/core/sock_reuseport.c of Linux).
 */
import type { Gid } from '../../core/spi/index.js';
import { slotOf } from '../shared-address/steering.js';
import type { MemoryPort } from './memory-port.js';
import type { PacketPool, WirePacket } from './wire-packet.js';

/** Packets that wait in a socket that nothing reads, at most. */
const MAX_QUEUED = 256;

export class SteeredSocket {
  private reader: MemoryPort | undefined;
  private readonly queued: WirePacket[] = [];
  private silent = false;

  constructor(
    readonly address: SteeredAddress,
    private readonly pool: PacketPool,
  ) {}

  get isRead(): boolean {
    return this.reader !== undefined;
  }

  deliver(packet: WirePacket): void {
    if (this.silent) this.pool.release(packet);
    else if (this.reader !== undefined) this.reader.deliver(packet);
    else if (this.queued.length < MAX_QUEUED) this.queued.push(packet);
    else this.pool.release(packet);
  }

  unreachable(gid: Gid): void {
    this.reader?.unreachable(gid);
  }

  readBy(port: MemoryPort): void {
    this.reader = port;
    for (const packet of this.queued.splice(0)) port.deliver(packet);
  }

  /** Nothing happens where another port reads. */
  notReadBy(port: MemoryPort): void {
    if (this.reader === port) this.reader = undefined;
  }

  /** Drops waiting packets, and those that arrive from now on. */
  silence(): void {
    this.silent = true;
    this.drain();
  }

  /** Accepts packets that arrive from now on. */
  wake(): void {
    this.drain();
    this.silent = false;
  }

  drain(): void {
    for (const packet of this.queued.splice(0)) this.pool.release(packet);
  }
}

export class SteeredAddress {
  private readonly sockets: SteeredSocket[] = [];
  /** Undefined while no program is attached. */
  private home: number | undefined;

  constructor(private readonly pool: PacketPool) {}

  get size(): number {
    return this.sockets.length;
  }

  /** Behind all others. */
  bind(): SteeredSocket {
    const socket = new SteeredSocket(this, this.pool);
    this.sockets.push(socket);
    return socket;
  }

  /** The last one moves into its place. */
  close(socket: SteeredSocket): void {
    socket.drain();
    const place = this.sockets.indexOf(socket);
    const last = this.sockets.pop();
    if (last !== undefined && last !== socket) this.sockets[place] = last;
  }

  placeOf(socket: SteeredSocket): number {
    return this.sockets.indexOf(socket);
  }

  steer(home: number): void {
    this.home = home;
  }

  deliver(packet: WirePacket): void {
    const socket = this.select(packet);
    if (socket === undefined) this.pool.release(packet);
    else socket.deliver(packet);
  }

  unreachable(gid: Gid): void {
    for (const socket of this.sockets) socket.unreachable(gid);
  }

  notReadBy(port: MemoryPort): void {
    for (const socket of this.sockets) socket.notReadBy(port);
  }

  /** A place that there is not, and all without a program, is a matter of the flow. */
  private select({ buffer, length, flow }: WirePacket): SteeredSocket | undefined {
    const { home, sockets } = this;
    const place = home === undefined ? -1 : slotOf(buffer.subarray(0, length), home);
    const hash = (): number => flow.source.reduce((sum, byte) => sum + byte, flow.sourcePort);
    return sockets[place] ?? sockets[hash() % sockets.length];
  }
}
