/**
 * Contract of the datagram port under agents and RMPP transfers: QP1 of a device (gsi-port.ts), or
 * a replacement.
 */
import type { Gid, WcStatus } from '../../core/spi/index.js';

/** A destination, as `MadPort.addresses` knows it. */
export interface PortAddress {
  readonly gid: Gid;
  readonly localGidIndex: number;
  /** Number of a device's address handle; 0 where there is none. */
  readonly handle: number;
}

/** One datagram. */
export interface WorkRequest {
  /** 256 bytes; read when it is posted, which may be again after a flush. */
  readonly data: Uint8Array;
  readonly address: PortAddress;
  readonly qpn: number;
  readonly qkey: number;
  /** Asked when it was flushed behind a failed one: false has it returned instead. */
  mayRepost(): boolean;
  /** Called once, from the pump. */
  onComplete(status: WcStatus): void;
}

export interface MadPort {
  readonly addresses: {
    /** @throws SpiError when the GID cannot be reached */
    acquire(gid: Gid, localGidIndex: number): PortAddress;
    release(address: PortAddress): void;
  };
  /** False when it is lost: nothing is sent any more. */
  readonly isOpen: boolean;
  /** Room for a request that may as well be dropped: nothing waits for it. */
  readonly hasRoom: boolean;
  /** Posts a request, or keeps it until there is room. On a lost port it comes back flushed. */
  post(request: WorkRequest): void;
  /** Takes a request back that has not been posted yet; false when it must complete first. */
  withdraw(request: WorkRequest): boolean;
}
