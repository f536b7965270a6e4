/**
 * PacketPort: transfers RoCEv2 packets for the software HCA. Three calls on the hot path, each for
 * a burst: `receive`, `place`, `send`; descriptors are words in preallocated arrays. The in-memory
 * port of mock, the dgram port and the native port pass one suite (test/port).
 */
import type { Gid } from '../wire/address.js';
import type { NetworkReport } from './network-report.js';

/** Received packet descriptor: 16 words. */
export const RX = {
  /** Byte offset in `rxArena` of the BTH. */
  OFFSET: 0,
  /** Bytes from the BTH to the end of the pad: the ICRC is verified and removed. */
  LENGTH: 1,
  /** RxFlags. */
  FLAGS: 2,
  /** Index in `gids` of the destination address, or GROUP_BIT and a group's number. */
  LOCAL_GID_INDEX: 3,
  /** Source GID as four big-endian words. */
  SOURCE_GID: 4,
  SOURCE_PORT: 8,
  /**
   * 0 if the arena has the whole packet. Otherwise the arena has its first 48 bytes, and this is
   * the PLACE.SOURCE of the first byte, beyond the arena's end. Payload of up to 256 bytes is
   * always in the arena.
   */
  BODY: 9,
  WORDS: 16,
} as const;

/** In RX.LOCAL_GID_INDEX: the packet was sent to a multicast group. */
export const GROUP_BIT = 0x80000000;

/** RECOVERED_ID: the ICRC was checked with a computed IPv4 identification, not a received one. */
export const RxFlags = { IPV6: 1, RECOVERED_ID: 2 } as const;

/** Placement descriptor: copies payload of a received packet to registered memory. 6 words. */
export const PLACE = {
  /** Byte offset in `rxArena`; counted from RX.BODY where that is not 0. */
  SOURCE: 0,
  LENGTH: 1,
  REGION: 2,
  /** Byte offset in the region. */
  OFFSET_LO: 3,
  OFFSET_HI: 4,
  WORDS: 6,
} as const;

/**
 * Packet to send: 16 words, of which the last 12 hold up to 48 bytes of headers from the BTH on. A
 * payload of a few words may follow the headers, and counts as headers; it has no pad then.
 */
export const TX = {
  PATH: 0,
  /** Bytes of headers (a multiple of 4, up to 48). */
  HEADER_LENGTH: 1,
  /** First entry in `txSegments`, and how many (0 for none). */
  FIRST_SEGMENT: 2,
  SEGMENT_COUNT: 3,
  HEADER: 4,
  WORDS: 16,
} as const;

/**
 * Payload segment of a packet to send: 4 words. The port adds pad (BTH PadCnt zero bytes) and ICRC.
 */
export const TX_SEGMENT = { REGION: 0, OFFSET_LO: 1, OFFSET_HI: 2, LENGTH: 3, WORDS: 4 } as const;

/** The longest payload that a port always copies during `send`, in bytes: the largest path MTU. */
export const COPIED_PAYLOAD_BYTES = 4096;

/** Counters of every port. */
export const PORT_COUNTERS = [
  'receivedPackets',
  'sentPackets',
  /** Datagrams too short, too long or malformed to hold a BTH and an ICRC. */
  'malformed',
  'badIcrc',
  /** IPv4 packets accepted with a computed identification. */
  'recoveredId',
  /** Packets that the system refused to send (not those left for a later call). */
  'sendErrors',
  /** Those of the send errors that were longer than the own link carries (EMSGSIZE). */
  'tooLong',
  /** ICMP that a port, a host or a network is unreachable: hints, possibly forged. */
  'icmpUnreachable',
  /** ICMP that packets are too big for a router on the path: also hints, never obeyed. */
  'icmpTooBig',
] as const;

export type PacketPortCounters = Record<(typeof PORT_COUNTERS)[number], number>;

/** All counters, at 0. */
export function newPortCounters(): PacketPortCounters {
  return Object.fromEntries(PORT_COUNTERS.map((name) => [name, 0])) as PacketPortCounters;
}

/** Another device, as its REQ describes it. */
export interface PeerDevice {
  /** Its node GUID, with its offers (peer-agreement.ts). */
  readonly guid: bigint;
  readonly gid: Gid;
  /** The source UDP port of its packets. */
  readonly udpPort: number;
  /** The process among those that share the device; absent for a device that is not shared. */
  readonly slot?: number;
}

export interface PacketPort {
  /** Addresses this port sends from and receives on; index 0 is the default. */
  readonly gids: readonly Gid[];
  /** Largest RoCE path MTU of the link, in bytes: 256 to 4096. */
  readonly mtuBytes: number;
  /** LOCAL_MTU_BYTES if packets to every reachable peer may be so long. */
  readonly localMtuBytes?: number;
  /** CHANNEL_MTU_BYTES if paths for so long packets may be added. */
  readonly channelMtuBytes?: number;
  readonly counters: PacketPortCounters;

  /**
   * Bytes of received packets; valid until the next `receive`. At least 48 of headers and the
   * longest payload: `mtuBytes`, or `localMtuBytes`. A device refuses to open with a port whose
   * arrays are below these minimums.
   */
  readonly rxArena: Uint8Array;
  /** `RX.WORDS` words per packet of the last `receive`: 1 packet at least. */
  readonly rxPackets: Uint32Array;
  /** `PLACE.WORDS` words per placement, 1 at least; filled by the HCA before `place`. */
  readonly placements: Uint32Array;
  /** `TX.WORDS` words per packet, 1 at least; filled by the HCA before `send`. */
  readonly txPackets: Uint32Array;
  /**
   * `TX_SEGMENT.WORDS` words per segment: one more than a request may have (`maxSge` of the HCA),
   * and 2 at least.
   */
  readonly txSegments: Uint32Array;

  /**
   * The device's clock, in microseconds: word 0 is CLOCK's time at the last `receive` or
   * `readClock`. It saves readings of the driver's own clock, each of which allocates a number.
   */
  readonly clockUs?: Float64Array;
  readClock?(): void;

  /**
   * The HCA places nothing more of the last `receive`. Call it once after a burst in which RX.BODY
   * was not always 0: the sender of such a packet waits for that before it reuses its memory.
   */
  release?(): void;
  /**
   * Cancels payload of SEND and WRITE that a path to this queue pair holds by reference and has not
   * processed yet: those packets are lost. Call it before the memory of unacknowledged requests is
   * given back. Absent if the ICRC detects changed payload.
   */
  withdraw?(path: number, destinationQpn: number): void;

  /** Receives waiting packets without blocking. Only packets with a correct ICRC are counted. */
  receive(): number;
  /** Copies the first `count` placements, in order. The caller has checked everything. */
  place(count: number): void;
  /**
   * Sends packets `from` to `to` - 1, in order for each path. RC payload longer than
   * COPIED_PAYLOAD_BYTES in one segment may be read from its memory as late as the peer reads it;
   * if it has changed by then, its ICRC fails. Payload in several segments is copied. Returns the
   * index of the first packet not sent (`to` if all were): the caller offers the rest again after
   * `onWritable`.
   */
  send(from: number, to: number): number;

  /**
   * Makes memory reachable for `place` and `send`; it is kept alive until removed.
   * @returns a region number
   */
  addRegion(memory: ArrayBufferLike, byteOffset: number, byteLength: number): number;
  removeRegion(region: number): void;
  /**
   * Adds a path. Paths are counted: equal arguments give the same number.
   * @param mtuBytes CHANNEL_MTU_BYTES for one through shared memory; all other values are equal
   * @param destinationQpn names the process, if processes share the device there
   * @throws RangeError when no local address can reach the GID (wrong address family), when no
   * memory is shared with it, and when `localGidIndex` is none
   * @throws SpiError('ENETUNREACH') to a multicast group that no route leads to
   */
  addPath(gid: Gid, localGidIndex: number, mtuBytes?: number, destinationQpn?: number): number;
  removePath(path: number): void;

  /**
   * Joins a multicast group at a local address of its family: packets to it arrive from now on.
   * Absent if a port cannot.
   * @returns a number below GROUP_BIT, of this group until it is left
   * @throws SpiError that names the group: EADDRINUSE, another program has its UDP port and shares
   * it with none; EADDRNOTAVAIL, no interface has the address any more; ENOMEM; EPERM
   */
  joinGroup?(group: Gid, localGidIndex: number): number;
  leaveGroup?(group: number): void;

  /**
   * Stores a datagram that is sent when a signal ends the process by its default action, without
   * JavaScript. Absent if a port cannot.
   * @param packet from the BTH to the pad: at most 512 bytes, of which those behind the 72nd are 0
   * @returns a number to remove it by; it is removed with the port at the latest
   * @throws RangeError
   */
  keepExitPacket?(path: number, packet: Uint8Array): number;
  dropExitPacket?(number: number): void;

  /**
   * Lets devices of this host find this one, by its node GUID. Absent, like `meet`, if a port has
   * only the network.
   * @returns true if they can: then the device offers CHANNEL (peer-agreement.ts)
   */
  listen?(nodeGuid: bigint): boolean;
  /**
   * Opens a channel to a device that offers CHANNEL, unless there is one. There is none to the
   * process itself.
   * @param done called once, within a second or so, with true if there is a channel now; from
   * inside this call if that is known
   */
  meet?(peer: PeerDevice, done: (met: boolean) => void): void;

  /** Sets the driver's handlers; they are never called from inside a port call. */
  watch(handlers: PacketPortHandlers): void;
  /** Sets whether waiting for packets keeps the process alive. */
  setProcessHold(alive: boolean): void;
  close(): Promise<void>;
}

export interface PacketPortHandlers {
  onReadable(): void;
  onWritable(): void;
  /**
   * Reports of network or system about packets to a destination: each at most every 100 ms or so.
   */
  onReport(report: NetworkReport): void;
}
