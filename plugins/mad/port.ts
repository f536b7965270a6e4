/**
 * Contract of the datagram port under agents and RMPP transfers: QP1 of a device (gsi-port.ts), or
 * a replacement.
 */
import type { Gid, WcStatus } from '../../core/spi/index.js';

/** A destination, as `MadPort.addresses` knows it. */
export interface PortAddress {
  readonly gid: Gid;
  readonly localGidIndex: number;
  /** Number of a device's address handle; 0 for none. */
  readonly handle: number;
}

/** One datagram. */
export interface WorkRequest {
  /** 256 bytes; read when the request is posted, which may be repeated after a flush. */
  readonly data: Uint8Array;
  readonly address: PortAddress;
  readonly qpn: number;
  readonly qkey: number;
  /** Called after a flush behind a failed request; if false, the request is completed instead. */
  mayRepost(): boolean;
  /** Called once, by the pump. */
  onComplete(status: WcStatus): void;
}

export interface MadPort {
  readonly addresses: {
    /** @throws SpiError if the GID cannot be reached */
    acquire(gid: Gid, localGidIndex: number): PortAddress;
    release(address: PortAddress): void;
  };
  /** False if the port is lost: nothing is sent any more. */
  readonly isOpen: boolean;
  /** True if there is room for a request that may as well be dropped: it is not queued. */
  readonly hasRoom: boolean;
  /** Posts a request, or keeps it until there is room. On a lost port it is flushed. */
  post(request: WorkRequest): void;
  /** Withdraws a request that was not posted yet; false if it must complete first. */
  withdraw(request: WorkRequest): boolean;
}
