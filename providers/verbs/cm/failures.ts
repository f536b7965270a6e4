/** Texts and errors for failures on an identifier of librdmacm, for people and for the consumer. */
import { nameOf, SpiError } from '../../../core/spi/index.js';
import { requestGone } from '../../../plugins/cm/provider.js';
import { CmEventType } from '../addon/rdmacm.js';
import { errnoName } from '../system/errno.js';
import type { CmNativeEvent } from './channel.js';

/** Explains an event that ends an attempt. */
export function failureText(event: CmNativeEvent): string {
  const status = statusText(event);
  switch (event.type) {
    case CmEventType.ADDR_ERROR:
      return `its address cannot be resolved (rdma_resolve_addr${status})`;
    case CmEventType.ROUTE_ERROR:
      return `no route is found (rdma_resolve_route${status})`;
    case CmEventType.UNREACHABLE:
      return `no answer (rdma_cm: UNREACHABLE${status})`;
    case CmEventType.DEVICE_REMOVAL:
      return 'the device is being removed';
    default:
      return `rdma_cm: ${nameOf(CmEventType, event.type)}${status}`;
  }
}

/** The status of an event: an errno by name, else the number. */
export function statusText({ status }: CmNativeEvent): string {
  if (status === 0) return '';
  return status < 0 ? `, ${errnoName(status)}` : `, status ${status}`;
}

/** EINVAL of a call on a request says that the kernel has none waiting there. */
export function goneOr(kind: 'connection' | 'resolution', error: unknown): unknown {
  const isGone = error instanceof SpiError && error.code === 'EINVAL';
  return isGone ? requestGone(kind, error.message) : error;
}
