/**
 * A device that several processes share, each with a part of it: its own numbers, and the owners of
 * common resources. See docs/shared.md.
 */
import type { Gid } from '../wire/address.js';

/** Contents and destination of a connection's DREQ. */
export interface ConnectionRecord {
  readonly localQpn: number;
  readonly remoteQpn: number;
  readonly localCommId: number;
  readonly remoteCommId: number;
  readonly peerGid: Gid;
  /** Index of one of the device's addresses. */
  readonly localGidIndex: number;
}

/** A packet that arrived at a process that it is not for. */
export interface HandedPacket {
  readonly sourceGid: Gid;
  readonly sourcePort: number;
  readonly localGidIndex: number;
  /** From the BTH to the end of the pad; its ICRC has been checked. */
  readonly bytes: Uint8Array;
}

export interface DeviceShare {
  /**
   * Slot of this process: 0 to 254, the top byte of its queue pair and SRQ numbers, of its
   * communication and SIDR request ids, and of its MAD transaction ids.
   */
  readonly slot: number;
  /** GUID of the whole device; each process has its own offers (peer-agreement.ts). */
  readonly nodeGuid: bigint;
  /**
   * Sends requests for the service to this process.
   * @throws SpiError('EADDRINUSE') another process listens there; ('ENOMEM') too many listeners;
   * ('EBUSY') a process that is changing the list of them is stopped
   */
  claimService(serviceId: bigint): void;
  releaseService(serviceId: bigint): void;
  /**
   * Sends requests of a management class to this process.
   * @throws SpiError as `claimService`
   */
  claimClass(managementClass: number): void;
  releaseClass(managementClass: number): void;
  /** The connection is established: if this process is killed, another one tells the peer. */
  noteConnection(record: ConnectionRecord): void;
  forgetConnection(localCommId: number): void;
  /** Slot of the process that a packet is for. @param packet from its BTH on */
  ownerOf(packet: Uint8Array): number;
  /** @returns false if it is lost: it is too long, or that process cannot be reached */
  handOver(slot: number, packet: HandedPacket): boolean;
}

/** Number of bits below the slot. */
export const SLOT_SHIFT = { QPN: 16, ID: 24 } as const;

/** A number of 32 bits with the slot in its top byte, where the device is shared. */
export function inSlot(share: { readonly slot: number } | undefined, number: number): number {
  if (share === undefined) return number >>> 0;
  return ((share.slot << SLOT_SHIFT.ID) | (number & 0xffffff)) >>> 0;
}
