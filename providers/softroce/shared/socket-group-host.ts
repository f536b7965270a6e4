/** System services of a process that shares an address, by the native addon. */
import { randomFillSync } from 'node:crypto';
import {
  type ConnectionRecord,
  type Gid,
  type HandedPacket,
  ipFromGid,
  type Logger,
  SpiError,
} from '../../../core/spi/index.js';
import type { UnixListener, UnixSocket, UnixSockets } from '../../host/index.js';
import type { GroupDevice } from '../../shared-address/group-device.js';
import type { GroupHost, Link } from '../../shared-address/group-host.js';
import { steeringProgram } from '../../shared-address/steering.js';
import type { GroupSockets } from './group-sockets.js';
import { inUseByUsers, notShared, steeringError } from './group-errors.js';
import { bindName, groupNames, type GroupNames } from './names.js';

const BACKLOG = 64;
/** The broker looks whether a slot's process lives by trying its name, for an instant. */
const LIFE_WAIT_MS = 50;

/** The part of the native addon that it uses. */
export interface GroupAddon extends GroupSockets, UnixSockets {
  /** MTU and scope id of the link of an address. */
  findLink(gid: Uint8Array): [mtuBytes: number, scopeId: number] | undefined;
}

export interface SocketGroupInit {
  readonly addon: GroupAddon;
  readonly gids: readonly Gid[];
  readonly udpPort: number;
  readonly logger: Logger;
  /** Why a socket could not be had for an address. */
  bindError(this: void, cause: unknown, address: string, udpPort: number): SpiError;
}

export class SocketGroupHost implements GroupHost {
  readonly addresses: number;
  readonly names: GroupNames;
  /** Absent while the device opens: packets for it are lost then, and repeated. */
  device: GroupDevice | undefined;

  /** Called by the event loop when something waits. */
  private readonly readers = new Set<() => void>();

  constructor(private readonly init: SocketGroupInit) {
    this.addresses = init.gids.length;
    this.names = groupNames(init.gids, init.udpPort);
  }

  connect(): Link | undefined {
    const { addon, gids, udpPort } = this.init;
    let socket: UnixSocket;
    try {
      socket = addon.connectUnix(this.names.broker);
    } catch (error) {
      if (isCode(error, 'ECONNREFUSED') || isCode(error, 'EAGAIN')) return undefined;
      throw error;
    }
    const { isOwnUser, uid } = socket.identity();
    if (isOwnUser) return this.linkOf(socket);
    socket.close();
    throw inUseByUsers(gids[0]!, udpPort, [uid]);
  }

  listen(onLink: (link: Link) => void): { close(): void } | undefined {
    let listener: UnixListener;
    try {
      listener = this.init.addon.listenUnix(this.names.broker, BACKLOG);
    } catch (error) {
      if (isCode(error, 'EADDRINUSE')) return undefined;
      throw error;
    }
    const accept = (): void => {
      let caller: UnixSocket | undefined;
      while ((caller = acceptFrom(listener)) !== undefined) {
        if (caller.identity().isOwnUser) onLink(this.linkOf(caller));
        else caller.close();
      }
    };
    listener.watch(accept);
    this.readers.add(accept);
    return {
      close: () => {
        this.readers.delete(accept);
        listener.close();
      },
    };
  }

  private linkOf(socket: UnixSocket): Link {
    let reader: (() => void) | undefined;
    return {
      send: (bytes, descriptors) => socket.send(bytes, descriptors),
      receive: () => socket.take(),
      watch: (onReadable) => {
        reader = onReadable;
        this.readers.add(reader);
        socket.watch(onReadable);
      },
      close: () => {
        if (reader !== undefined) this.readers.delete(reader);
        socket.close();
      },
    };
  }

  /** As the event loop would, where it does not turn. */
  turn(): void {
    for (const read of [...this.readers]) if (this.readers.has(read)) read();
  }

  isGroupThere(): boolean {
    const { addon, gids, udpPort } = this.init;
    let found = false;
    for (const gid of gids) {
      const users = addon.socketUsers(gid, udpPort);
      if (users.length === 0) continue;
      found = true;
      this.checkShared(gid, users);
    }
    return found;
  }

  /** A socket for an instant, behind all others: none of them moves. */
  private checkShared(gid: Gid, users: readonly number[]): void {
    try {
      this.closeDescriptors([this.bindSocket(gid)]);
    } catch (error) {
      if (isCode(error, 'EADDRINUSE')) throw notShared(gid, this.init.udpPort, users);
      throw this.init.bindError(error, ipFromGid(gid), this.init.udpPort);
    }
  }

  createTable(lengthBytes: number): { memory: ArrayBuffer; descriptor: number } {
    const { memory, descriptor } = this.init.addon.createSharedTable('dapl-shared', lengthBytes);
    return { memory, descriptor };
  }

  mapTable(descriptor: number, lengthBytes: number): ArrayBuffer {
    return this.init.addon.mapSharedTable(descriptor, lengthBytes);
  }

  bindPlace(): number[] {
    const { gids, udpPort } = this.init;
    const descriptors: number[] = [];
    for (const gid of gids) {
      try {
        descriptors.push(this.bindSocket(gid));
      } catch (error) {
        // The last one first: whatever is closed is the last of its group.
        this.closeDescriptors(descriptors.reverse());
        if (isCode(error, 'EADDRINUSE')) {
          throw notShared(gid, udpPort, this.init.addon.socketUsers(gid, udpPort));
        }
        throw this.init.bindError(error, ipFromGid(gid), udpPort);
      }
    }
    return descriptors;
  }

  private bindSocket(gid: Gid): number {
    const { addon, udpPort } = this.init;
    const scopeId = addon.findLink(gid)?.[1] ?? 0;
    const descriptor = addon.bindGroupSocket(gid, scopeId, udpPort);
    return descriptor;
  }

  steer(home: number, descriptors: readonly number[]): void {
    const program = Uint32Array.from(steeringProgram(home).flat());
    try {
      for (const descriptor of descriptors) this.init.addon.attachSteering(descriptor, program);
    } catch (error) {
      throw steeringError(error);
    }
  }

  silence(descriptors: readonly number[]): void {
    for (const descriptor of descriptors) {
      this.init.addon.dropAll(descriptor);
      this.init.addon.drain(descriptor);
    }
  }

  wake(descriptors: readonly number[]): void {
    for (const descriptor of descriptors) {
      this.init.addon.drain(descriptor);
      this.init.addon.takeAll(descriptor);
    }
  }

  closeDescriptors(descriptors: readonly number[]): void {
    for (const descriptor of descriptors) {
      this.init.addon.closeDescriptor(descriptor);
    }
  }

  liveAs(slot: number): { close(): void } {
    const name = bindName(this.init.addon, this.names.slot(slot), LIFE_WAIT_MS);
    if (name === undefined) {
      throw new SpiError('EADDRINUSE', `slot ${slot} of the shared device is another process's`);
    }
    return name;
  }

  isAlive(slot: number): boolean {
    try {
      this.init.addon.listenUnix(this.names.slot(slot), 1).close();
      return false;
    } catch {
      return true;
    }
  }

  disconnect(record: ConnectionRecord): void {
    this.device?.disconnect(record);
  }

  deliver(packet: HandedPacket): void {
    this.device?.deliver(packet);
  }

  onLost(reason: string): void {
    this.device?.onLost(reason);
  }

  /** A group that only waits keeps no process alive. */
  startTimer(delayUs: number, onTimeout: () => void): () => void {
    const timer = setTimeout(onTimeout, Math.ceil(delayUs / 1000)).unref();
    return () => clearTimeout(timer);
  }

  nowUs(): number {
    return Number(process.hrtime.bigint() / 1000n);
  }

  randomGuid(): bigint {
    const words = randomFillSync(new BigUint64Array(1));
    return (words[0] ?? 0n) | 1n;
  }

  note(message: string, details: Readonly<Record<string, unknown>>): void {
    this.init.logger.warn(message, { ...details });
  }
}

/** Too many open files, and the like, are as if nothing had come: the caller tries again. */
function acceptFrom(listener: UnixListener): UnixSocket | undefined {
  try {
    return listener.accept();
  } catch {
    return undefined;
  }
}

function isCode(error: unknown, code: string): boolean {
  return (error as { code?: string }).code === code;
}
