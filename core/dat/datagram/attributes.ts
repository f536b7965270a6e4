/** Attributes of endpoints for datagrams: defaults, limits and checks. */
import type { DeviceAttributes } from '../../spi/index.js';
import { BOOLEAN } from '../../spi/checks/index.js';
import { checkInteger, checkOptions, checkValue } from '../../errors/guards.js';
import type { QueueAttributes } from '../work/attributes.js';

/** RDMA_UDP_QKEY: the Q_Key of rdma_cm's datagram services (include/rdma/rdma_cm.h). */
export const DEFAULT_QKEY = 0x01234567;

/** Attributes of an endpoint for datagrams. */
export interface UdEpAttributes extends QueueAttributes {
  /** Q_Key, u32: datagrams with another one are dropped. Linux's services have 0x01234567. */
  readonly qkey: number;
  /**
   * Default of `loopback` in `joinMulticast`. Over verbs it holds for all groups: false takes a
   * driver that can block the own copies of a queue pair (rdma_rxe cannot).
   */
  readonly multicastLoopback: boolean;
}

const DTO_DEFAULT = 128;
const IOV_DEFAULT = 4;
const MAX_U32 = 2 ** 32 - 1;

/**
 * The attributes of a new endpoint: the options where given, else the defaults.
 * @throws DatError DAT_INVALID_PARAMETER naming the attribute, its value and the device's limit
 */
export function udEpAttributes(
  operation: string,
  options: Partial<UdEpAttributes>,
  device: DeviceAttributes,
): UdEpAttributes {
  const dtos = Math.min(DTO_DEFAULT, device.maxQueuePairWr);
  const iov = Math.min(IOV_DEFAULT, device.maxSge);
  const defaults: UdEpAttributes = {
    maxRecvDtos: dtos,
    maxRequestDtos: dtos,
    maxRecvIov: iov,
    maxRequestIov: iov,
    qkey: DEFAULT_QKEY,
    multicastLoopback: true,
  };
  checkOptions(operation, options, Object.keys(defaults), 'attributes');
  const attributes = { ...defaults, ...options };
  const check = (name: keyof UdEpAttributes, min: number, max: number): void =>
    checkInteger(operation, name, attributes[name], min, max, 'attributes');
  check('maxRecvDtos', 1, device.maxQueuePairWr);
  check('maxRequestDtos', 1, device.maxQueuePairWr);
  check('maxRecvIov', 1, device.maxSge);
  check('maxRequestIov', 1, device.maxSge);
  check('qkey', 0, MAX_U32);
  const { multicastLoopback } = attributes;
  checkValue(operation, 'multicastLoopback', multicastLoopback, BOOLEAN, 'attributes');
  return Object.freeze(attributes);
}
