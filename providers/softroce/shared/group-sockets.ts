/**
 * Sockets of processes that share an address (docs/shared.md), as the native addon has them: a
 * group of UDP sockets bound to it with SO_REUSEPORT, a classic BPF program that says which of
 * them takes a packet (socket(7), SO_ATTACH_REUSEPORT_CBPF), and what the processes pass each
 * other.
 *
 * A socket's place in the group is the order in which it was bound. When the last descriptor of
 * it is closed, in whatever process, the group's last socket moves into its place: so every place
 * needs a duplicate elsewhere. Descriptors that come from here are the calling thread's, and are
 * closed when it ends.
 */

export interface SharedTable {
  readonly memory: ArrayBuffer;
  /** Close-on-exec; its size is sealed. */
  readonly descriptor: number;
}

/** Functions with a descriptor throw Error with `code` EBADF where it is none. */
export interface GroupSockets {
  /**
   * Opens a socket as a port does, and binds it into the group of the address, behind the others.
   * @throws Error with `code` EADDRINUSE where a socket without SO_REUSEPORT, or one of another
   * user, has the address; EADDRNOTAVAIL, EACCES and others of bind(2)
   */
  bindGroupSocket(gid: Uint8Array, scopeId: number, udpPort: number): number;
  /**
   * From now on the program steers the whole group: it sees what follows the UDP header, and
   * returns a place. The latest one counts, whichever process attached it.
   * @param program 1 to 4,096 instructions of four words: code, jt, jf, k (linux/filter.h)
   * @throws Error with `code` EINVAL for a program that the system refuses, or a socket outside a
   * group; ENOMEM (net.core.optmem_max); EPERM, EACCES or ENOSYS from a sandbox
   */
  attachSteering(descriptor: number, program: Uint32Array): void;
  /**
   * Drops packets that arrive at the socket from now on, before they are queued, for all processes.
   */
  dropAll(descriptor: number): void;
  /** Ends `dropAll`; without it nothing happens. */
  takeAll(descriptor: number): void;
  /**
   * Discards queued datagrams, which may hold memory of peers, and errors.
   * @returns datagrams; at most 65,536 a call, so that a flood does not hold the thread
   */
  drain(descriptor: number): number;
  /** The place stays taken while one of the two is open. @throws Error with `code` EMFILE */
  duplicate(descriptor: number): number;
  /**
   * Closes a descriptor. Does nothing if it is closed already, or was never given out to this
   * thread.
   */
  closeDescriptor(descriptor: number): void;
  /** Zeros. @param name what /proc shows, at most 200 bytes */
  createSharedTable(name: string, lengthBytes: number): SharedTable;
  /**
   * Maps what another process has created. The descriptor stays the caller's.
   * @throws Error with `code` EINVAL where it is not such memory of exactly this length
   */
  mapSharedTable(descriptor: number, lengthBytes: number): ArrayBuffer;
  /**
   * Effective users of the sockets that take datagrams to an address, each once: bound to it, or
   * to the port on every address. Empty where the system does not tell (no /proc).
   */
  socketUsers(gid: Uint8Array, udpPort: number): number[];
}
