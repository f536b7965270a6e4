/** Checks of the consumer's arguments. Errors name the value and the limit. */
import {
  checkInteger,
  checkValue,
  checkValues,
  integer,
  isU64,
  oneOf,
  optional,
  POSITIVE,
} from '../../../core/spi/checks/index.js';
import { einval } from '../../../core/spi/errors/einval.js';
import {
  type CmConnectOptions,
  type CmParameters,
  type CmResolveOptions,
  PATH_MTU_BYTES,
} from '../../../core/spi/index.js';

const PARAMETERS = {
  responderResources: integer(0, 255),
  initiatorDepth: integer(0, 255),
  retryCount: integer(0, 7),
  rnrRetryCount: integer(0, 7),
  minRnrTimer: integer(0, 31),
};
const CONNECT_OPTIONS = {
  ...PARAMETERS,
  timeoutUs: POSITIVE,
  ackTimeout: optional(integer(1, 31)),
  pathMtuBytes: optional(oneOf(PATH_MTU_BYTES.slice(1))),
};

export function checkPrivateData(message: string, data: Uint8Array, limitBytes: number): void {
  checkRange(`the length of the private data of ${message}`, data.length, 0, limitBytes);
}

export function checkParameters(parameters: CmParameters): void {
  checkValues(parameters, PARAMETERS, einval);
}

/** Checks service id, peer and time limit of a request. */
export function checkPeer(options: CmConnectOptions | CmResolveOptions): void {
  const { remoteGid, serviceId, timeoutUs } = options;
  checkServiceId(serviceId);
  if (remoteGid.length !== 16) throw einval('the length of remoteGid', remoteGid.length, '16');
  checkValue('timeoutUs', timeoutUs, POSITIVE, einval);
}

export function checkConnectOptions(options: CmConnectOptions): void {
  checkPeer(options);
  checkValues(options, CONNECT_OPTIONS, einval);
}

/** Call it before the private data is checked: the service id decides how much fits. */
export function checkServiceId(serviceId: bigint): void {
  if (!isU64(serviceId)) throw einval('serviceId', serviceId, 'a bigint from 0 to 2^64 - 1');
}

export function checkRange(name: string, value: number, min: number, max: number): void {
  checkInteger(name, value, min, max, einval);
}
