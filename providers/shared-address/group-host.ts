/**
 * System services for a process that shares a device: sockets of the group, a name that only one
 * process can have, memory, time. Descriptors are numbers that mean something to the host alone.
 */
import type { ConnectionRecord, HandedPacket } from '../../core/spi/index.js';

/** Whole messages with descriptors, to one other process: as `UnixSocket` of providers/host. */
export interface Link {
  /**
   * @returns false while the peer's queue is full
   * @throws Error when the peer is gone
   */
  send(bytes: Uint8Array, descriptors: readonly number[]): boolean;
  /**
   * @returns undefined while nothing waits, null at the end
   * @throws Error for a message beyond the limits: it is lost
   */
  receive():
    { readonly bytes: Uint8Array; readonly descriptors: readonly number[] } | undefined | null;
  /** Called, never from inside a call, while something waits, or the end. */
  watch(onReadable: () => void): void;
  close(): void;
}

export interface GroupHost {
  /** Addresses of the device: a place has a socket for each. */
  readonly addresses: number;
  /**
   * @returns undefined where nothing listens by the name
   * @throws SpiError('EADDRINUSE') it is another user's
   */
  connect(): Link | undefined;
  /** @returns undefined where another process has the name */
  listen(onLink: (link: Link) => void): { close(): void } | undefined;
  /**
   * True if sockets of a group exist: then one of its processes is about to take the name. Called
   * by the process that has the name: no other process binds sockets then.
   * @throws SpiError('EADDRINUSE') a socket that is not shared, or another user's, is there
   */
  isGroupThere(): boolean;
  /** @throws SpiError('ENOMEM') */
  createTable(lengthBytes: number): { readonly memory: ArrayBuffer; readonly descriptor: number };
  /** @throws Error where it is no such memory */
  mapTable(descriptor: number, lengthBytes: number): ArrayBuffer;
  /**
   * A socket for each address, behind all others of its group.
   * @throws SpiError as `bindError` of softroce
   */
  bindPlace(): number[];
  /**
   * Has the system steer packets; those of slot 0, and what belongs to no slot, go to `home`.
   * @param descriptors any socket of each address
   * @throws SpiError('EOPNOTSUPP') the system does not let us
   */
  steer(home: number, descriptors: readonly number[]): void;
  /** Drops packets that arrive at the sockets from now on. */
  silence(descriptors: readonly number[]): void;
  /** Ends that, and empties them. */
  wake(descriptors: readonly number[]): void;
  closeDescriptors(descriptors: readonly number[]): void;
  /** Takes the name that shows, until this process ends or closes it, that the slot is used. */
  liveAs(slot: number): { close(): void };
  /** True if a process has that name, even if it is stopped. */
  isAlive(slot: number): boolean;
  /** Sends one DREQ for a connection of another process. */
  disconnect(record: ConnectionRecord): void;
  /** A packet for this process, which came to another. */
  deliver(packet: HandedPacket): void;
  /** Our slot is another process's, or free: the device is lost. */
  onLost(reason: string): void;
  /** @returns stops it */
  startTimer(delayUs: number, onTimeout: () => void): () => void;
  /** Time of a clock that all processes of the machine share. */
  nowUs(): number;
  /** 64 random bits, not 0. */
  randomGuid(): bigint;
  /** Logs, for people, a problem that has been handled. */
  note(message: string, details: Readonly<Record<string, unknown>>): void;
}
