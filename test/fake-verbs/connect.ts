/** A queue pair's way to RTS without a connection manager. */
import type { Device, QueuePair } from '../../core/spi/device/device.js';
import { Access, QpState, QpType } from '../../core/spi/wire/ib.js';
import { SpiError } from '../../core/spi/errors/spi-error.js';

const { LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC } = Access;

/** Takes a connected queue pair of one device to RTS with its peer, or as far as `until`. */
export function connect(
  device: Device,
  qp: QueuePair,
  peer: QueuePair,
  until: QpState = QpState.RTS,
): void {
  if (until < QpState.INIT) throw new SpiError('EINVAL', `connect as far as ${until}`);
  const isReliable = qp.type === QpType.RC;
  const accessFlags = LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ | REMOTE_ATOMIC;
  const { portNumber, activeMtuBytes } = device.attributes;
  qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber, accessFlags });
  if (until < QpState.RTR) return;
  const [gid = new Uint8Array(16)] = device.gids;
  qp.modify({
    state: QpState.RTR,
    addressVector: { gid, localGidIndex: 0 },
    pathMtuBytes: activeMtuBytes,
    destinationQpn: peer.qpn,
    receivePsn: 0,
    ...(isReliable && { maxDestRdAtomic: 16, minRnrTimer: 12 }),
  });
  if (until < QpState.RTS) return;
  qp.modify({
    state: QpState.RTS,
    sendPsn: 0,
    ...(isReliable && { timeout: 14, retryCount: 7, rnrRetryCount: 7, maxRdAtomic: 16 }),
  });
}

/** Takes a datagram queue pair to RTS. */
export function open(device: Device, qp: QueuePair, qkey: number): void {
  const { portNumber } = device.attributes;
  qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber, qkey });
  qp.modify({ state: QpState.RTR });
  qp.modify({ state: QpState.RTS, sendPsn: 0 });
}
