/** Base class for wrappers of a packet port: they override only what they change. */
import type { Gid } from '../wire/address.js';
import type { PacketPort, PacketPortCounters, PacketPortHandlers } from './packet-port.js';

/** A packet port that forwards everything to another one, and has the same members. */
export class ForwardingPort implements PacketPort {
  readonly gids: readonly Gid[];
  readonly mtuBytes: number;
  readonly localMtuBytes?: number;
  readonly channelMtuBytes?: number;
  readonly counters: PacketPortCounters;
  readonly rxArena: Uint8Array;
  readonly rxPackets: Uint32Array;
  readonly placements: Uint32Array;
  readonly txPackets: Uint32Array;
  readonly txSegments: Uint32Array;
  readonly clockUs?: Float64Array;
  readonly readClock?: NonNullable<PacketPort['readClock']>;
  readonly release?: NonNullable<PacketPort['release']>;
  readonly withdraw?: NonNullable<PacketPort['withdraw']>;
  readonly joinGroup?: NonNullable<PacketPort['joinGroup']>;
  readonly leaveGroup?: NonNullable<PacketPort['leaveGroup']>;
  readonly keepExitPacket?: NonNullable<PacketPort['keepExitPacket']>;
  readonly dropExitPacket?: NonNullable<PacketPort['dropExitPacket']>;
  readonly listen?: NonNullable<PacketPort['listen']>;
  readonly meet?: NonNullable<PacketPort['meet']>;

  /**
   * @param channels false for a wrapper that reads packets: those through shared memory have their
   * payload in other memory, so connections use datagrams only
   */
  constructor(
    protected readonly port: PacketPort,
    { channels = true }: { readonly channels?: boolean } = {},
  ) {
    this.gids = port.gids;
    this.mtuBytes = port.mtuBytes;
    this.counters = port.counters;
    this.rxArena = port.rxArena;
    this.rxPackets = port.rxPackets;
    this.placements = port.placements;
    this.txPackets = port.txPackets;
    this.txSegments = port.txSegments;
    // A port without one of these members cannot do it.
    if (port.localMtuBytes !== undefined) this.localMtuBytes = port.localMtuBytes;
    if (port.clockUs !== undefined) this.clockUs = port.clockUs;
    if (port.readClock) this.readClock = port.readClock.bind(port);
    if (port.release) this.release = port.release.bind(port);
    if (port.withdraw) this.withdraw = port.withdraw.bind(port);
    if (port.joinGroup) this.joinGroup = port.joinGroup.bind(port);
    if (port.leaveGroup) this.leaveGroup = port.leaveGroup.bind(port);
    if (port.keepExitPacket) this.keepExitPacket = port.keepExitPacket.bind(port);
    if (port.dropExitPacket) this.dropExitPacket = port.dropExitPacket.bind(port);
    if (!channels) return;
    if (port.channelMtuBytes !== undefined) this.channelMtuBytes = port.channelMtuBytes;
    if (port.listen) this.listen = port.listen.bind(port);
    if (port.meet) this.meet = port.meet.bind(port);
  }

  receive(): number {
    return this.port.receive();
  }

  place(count: number): void {
    this.port.place(count);
  }

  send(from: number, to: number): number {
    return this.port.send(from, to);
  }

  addRegion(memory: ArrayBufferLike, byteOffset: number, byteLength: number): number {
    return this.port.addRegion(memory, byteOffset, byteLength);
  }

  removeRegion(region: number): void {
    this.port.removeRegion(region);
  }

  addPath(gid: Gid, localGidIndex: number, mtuBytes?: number, destinationQpn?: number): number {
    return this.port.addPath(gid, localGidIndex, mtuBytes, destinationQpn);
  }

  removePath(path: number): void {
    this.port.removePath(path);
  }

  watch(handlers: PacketPortHandlers): void {
    this.port.watch(handlers);
  }

  setProcessHold(alive: boolean): void {
    this.port.setProcessHold(alive);
  }

  close(): Promise<void> {
    return this.port.close();
  }
}
