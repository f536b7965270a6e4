/** Ranges of queue pair attributes; which of them a transition takes is in qp-transitions.ts. */
import { Access, PATH_MTU_BYTES, SpiError, isMulticastGid } from '../../../core/spi/index.js';
import type { PacketPort, QueuePairAttributes } from '../../../core/spi/index.js';
import type { HcaParameters } from '../common/parameters.js';

/** What of the device bounds an attribute. */
export interface AttributeLimits {
  readonly mtuBytes: number;
  readonly localMtuBytes: number | undefined;
  readonly gidCount: number;
  readonly parameters: HcaParameters;
}

export function limitsOf(port: PacketPort, parameters: HcaParameters): AttributeLimits {
  const { mtuBytes, localMtuBytes, gids } = port;
  return { mtuBytes, localMtuBytes, gidCount: gids.length, parameters };
}

const QP_ACCESS =
  Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC;

/** @throws SpiError('EINVAL') that names the attribute, its value and the limit */
export function checkAttributeValues(a: QueuePairAttributes, limits: AttributeLimits): void {
  const { maxResponderResources, maxInitiatorDepth } = limits.parameters;
  range('pkeyIndex', a.pkeyIndex, 0, 0);
  range('portNumber', a.portNumber, 1, 1);
  range('qkey', a.qkey, 0, 0xffffffff);
  range('destinationQpn', a.destinationQpn, 0, 0xffffff);
  range('receivePsn', a.receivePsn, 0, 0xffffffff);
  range('sendPsn', a.sendPsn, 0, 0xffffffff);
  range('maxDestRdAtomic', a.maxDestRdAtomic, 0, maxResponderResources);
  range('maxRdAtomic', a.maxRdAtomic, 0, maxInitiatorDepth);
  range('minRnrTimer', a.minRnrTimer, 0, 31);
  range('timeout', a.timeout, 0, 31);
  range('retryCount', a.retryCount, 0, 7);
  range('rnrRetryCount', a.rnrRetryCount, 0, 7);
  if (a.accessFlags !== undefined && (a.accessFlags & ~QP_ACCESS) !== 0) {
    throw new SpiError('EINVAL', `accessFlags 0x${a.accessFlags.toString(16)}: unknown bits`);
  }
  if (a.pathMtuBytes !== undefined && a.pathMtuBytes !== limits.localMtuBytes) {
    checkMtu(a.pathMtuBytes, limits.mtuBytes);
  }
  if (a.addressVector) {
    const { gid, localGidIndex, peer } = a.addressVector;
    range('addressVector.peer.sourcePort', peer?.sourcePort, 1, 65535);
    range('addressVector.localGidIndex', localGidIndex, 0, limits.gidCount - 1);
    if (gid.length === 16 && isMulticastGid(gid)) {
      throw new SpiError('EINVAL', 'addressVector.gid is that of a multicast group');
    }
    if (gid.length !== 16) {
      throw new SpiError('EINVAL', `addressVector.gid has ${gid.length} bytes, not 16`);
    }
  }
}

function checkMtu(pathMtuBytes: number, mtuBytes: number): void {
  if (pathMtuBytes === 0 || !PATH_MTU_BYTES.includes(pathMtuBytes)) {
    throw new SpiError('EINVAL', `pathMtuBytes ${pathMtuBytes}: 256, 512, 1024, 2048 or 4096`);
  }
  if (pathMtuBytes > mtuBytes) {
    throw new SpiError('EINVAL', `pathMtuBytes ${pathMtuBytes}: the port takes ${mtuBytes}`);
  }
}

function range(name: string, value: number | undefined, min: number, max: number): void {
  if (value === undefined) return;
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new SpiError('EINVAL', `${name} ${value}: ${min} to ${max}`);
  }
}
