/** How the queue pairs of the simulation are connected: by hand, as the CM would. */
import { Access, type Gid, QpState, type QueuePair } from '../../core/spi/index.js';

export const REMOTE = Access.REMOTE_READ | Access.REMOTE_WRITE | Access.REMOTE_ATOMIC;

/** The attributes that both sides of a connection agree on. */
export interface ConnectionParameters {
  readonly mtuBytes: number;
  readonly timeout: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  readonly minRnrTimer: number;
  readonly readDepth: number;
  readonly queueDepth: number;
}

/** From RESET to RTS. */
export function connectQueuePair(
  qp: QueuePair,
  parameters: ConnectionParameters,
  gid: Gid,
  destinationQpn: number,
  sendPsn: number,
  receivePsn: number,
): void {
  qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: REMOTE });
  qp.modify({
    state: QpState.RTR,
    addressVector: { gid, localGidIndex: 0 },
    pathMtuBytes: parameters.mtuBytes,
    destinationQpn,
    receivePsn,
    maxDestRdAtomic: parameters.readDepth,
    minRnrTimer: parameters.minRnrTimer,
  });
  qp.modify({
    state: QpState.RTS,
    sendPsn,
    timeout: parameters.timeout,
    retryCount: parameters.retryCount,
    rnrRetryCount: parameters.rnrRetryCount,
    maxRdAtomic: parameters.readDepth,
  });
}
