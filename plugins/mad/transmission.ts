/**
 * The transmission of a MAD: one work request (here), or an RMPP transfer of many (rmpp-sender.ts).
 * The send (mad-send.ts) does not tell them apart.
 */
import { type MadAddress, WcStatus } from '../../core/spi/index.js';
import type { MadPort, PortAddress, WorkRequest } from './port.js';

export interface Transmission {
  /** Posts work requests; `onTransmitted` follows once. */
  start(): void;
  /**
   * Posts no more requests, and withdraws those that wait for room. `onTransmitted` follows when
   * none is on QP1, possibly immediately.
   * @param tellPeer true to tell a peer that has received a part of it
   */
  stop(tellPeer: boolean): void;
  /** The send was reported. */
  forget(): void;
  /** False if starting it again is of no use. */
  readonly isRepeatable: boolean;
}

/** Owner of a transmission. Each of its work requests holds a reference to it. */
export interface TransmissionOwner {
  retain(): void;
  release(): void;
  readonly unregistering: boolean;
}

/** End of a transmission; `withdrawn`: it was stopped, and the end waits for no completion. */
export type TransmissionEnd = 'sent' | 'failed' | 'withdrawn';

/**
 * The transmission has no requests on the port any more.
 * @param rmppStatus status of the STOP or ABORT that ended an RMPP transfer; 0 otherwise
 */
export type OnTransmitted = (end: TransmissionEnd, status: WcStatus, rmppStatus: number) => void;

/** Destination of a MAD. */
export interface Destination {
  readonly address: PortAddress;
  readonly qpn: number;
  readonly qkey: number;
}

/** A MAD of 256 bytes as one work request. */
export class SingleMad implements Transmission, WorkRequest {
  readonly isRepeatable = true;
  readonly address: PortAddress;
  readonly qpn: number;
  readonly qkey: number;
  private stopped = false;

  constructor(
    private readonly port: MadPort,
    private readonly owner: TransmissionOwner,
    readonly data: Uint8Array,
    destination: Destination,
    private readonly onTransmitted: OnTransmitted,
  ) {
    this.address = destination.address;
    this.qpn = destination.qpn;
    this.qkey = destination.qkey;
  }

  start(): void {
    this.owner.retain();
    this.port.post(this);
  }

  stop(): void {
    this.stopped = true;
    if (!this.port.withdraw(this)) return;
    this.onTransmitted('withdrawn', WcStatus.SUCCESS, 0);
    this.owner.release();
  }

  forget(): void {
    // Nothing is kept.
  }

  mayRepost(): boolean {
    return !this.stopped && !this.owner.unregistering;
  }

  onComplete(status: WcStatus): void {
    this.onTransmitted(status === WcStatus.SUCCESS ? 'sent' : 'failed', status, 0);
    this.owner.release();
  }
}

/**
 * Sends an answer to a MAD from any peer. Its end is not reported. Callers check for room on QP1
 * first, because strangers can trigger any number of answers.
 * @throws SpiError if the peer cannot be reached
 */
export function postAnswer(
  port: MadPort,
  owner: TransmissionOwner,
  data: Uint8Array,
  { gid, localGidIndex, qpn, qkey }: MadAddress,
): void {
  const address = port.addresses.acquire(gid, localGidIndex);
  owner.retain();
  port.post({
    data,
    address,
    qpn,
    qkey,
    mayRepost: () => !owner.unregistering,
    onComplete: () => {
      port.addresses.release(address);
      owner.release();
    },
  });
}
