/** What the consumer passes in, checked with a sentence that names value and limit. */
import { PATH_MTU_BYTES, SpiError } from '../../../core/spi/index.js';
import type { CmConnectOptions, CmParameters, CmResolveOptions } from '../../../core/spi/index.js';

export function checkPrivateData(message: string, data: Uint8Array, limitBytes: number): void {
  if (data.length <= limitBytes) return;
  throw new SpiError(
    'EINVAL',
    `${data.length} bytes of private data: ${message} has room for ${limitBytes}`,
  );
}

export function checkParameters(parameters: CmParameters): void {
  checkRange('responderResources', parameters.responderResources, 0, 255);
  checkRange('initiatorDepth', parameters.initiatorDepth, 0, 255);
  checkRange('retryCount', parameters.retryCount, 0, 7);
  checkRange('rnrRetryCount', parameters.rnrRetryCount, 0, 7);
  checkRange('minRnrTimer', parameters.minRnrTimer, 0, 31);
}

/** Which peer to ask, and for how long at most. */
export function checkPeer({ remoteGid, timeoutUs }: CmConnectOptions | CmResolveOptions): void {
  if (remoteGid.length !== 16) {
    throw new SpiError('EINVAL', `a remote GID of ${remoteGid.length} bytes: must be 16`);
  }
  if (!(timeoutUs > 0)) throw new SpiError('EINVAL', `timeoutUs ${timeoutUs}: must be above 0`);
}

export function checkConnectOptions(options: CmConnectOptions): void {
  const { ackTimeout, pathMtuBytes } = options;
  checkParameters(options);
  checkPeer(options);
  if (ackTimeout !== undefined) checkRange('ackTimeout', ackTimeout, 1, 31);
  if (pathMtuBytes !== undefined && PATH_MTU_BYTES.indexOf(pathMtuBytes) < 1) {
    throw new SpiError(
      'EINVAL',
      `path MTU ${pathMtuBytes}: one of ${PATH_MTU_BYTES.slice(1).join()}`,
    );
  }
}

export function checkRange(name: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  throw new SpiError('EINVAL', `${name} ${value}: ${min} to ${max}`);
}
