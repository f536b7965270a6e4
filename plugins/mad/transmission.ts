/**
 * The transmission of a MAD: one work request (here), or an RMPP transfer of many (rmpp-sender.ts).
 * The send (mad-send.ts) does not tell them apart.
 */
import { type MadAddress, WcStatus } from '../../core/spi/index.js';
import type { MadPort, PortAddress, WorkRequest } from './port.js';

export interface Transmission {
  /** Puts work on the port; `onTransmitted` follows once. */
  start(): void;
  /**
   * No more work for the port, and what waits for room there is taken back. `onTransmitted` follows
   * when nothing of it is on QP1, which may be at once.
   * @param tellPeer whether a peer that has got a part of it is to know
   */
  stop(tellPeer: boolean): void;
  /** Its send is reported. */
  forget(): void;
  /** False when starting it again is of no use. */
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
 * Nothing of the transmission is on the port any more.
 * @param rmppStatus why the peer, or we, have broken an RMPP transfer off; 0 otherwise
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
 * A MAD that answers what a stranger has sent: nothing waits for its end. Callers look for room on
 * QP1 before they make it, as strangers can ask for any number of them.
 * @throws SpiError when the peer cannot be reached
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
