/** rdma_cm's 64-bit service ids taken apart: port space in bits 31-16, port in bits 15-0. */
import { PortSpace } from '../../../core/spi/cm.js';

/** IP over InfiniBand's space, for completeness of what may arrive; nothing listens on it here. */
const IPOIB_PORT_SPACE = 0x0002n;

const MAX_CMA_SERVICE_ID = 0xffff_ffffn;

/** For people: `port 7000 (service id 0x1061b58)`. */
export function serviceName(serviceId: bigint): string {
  const name = `service id 0x${serviceId.toString(16)}`;
  return isCmaServiceId(serviceId) ? `port ${serviceId & 0xffffn} (${name})` : name;
}

/** Whether requests for this id carry rdma_cm's header: a known port space, nothing above it. */
export function isCmaServiceId(serviceId: bigint): boolean {
  if (serviceId > MAX_CMA_SERVICE_ID) return false;
  const space = serviceId >> 16n;
  return space === IPOIB_PORT_SPACE || Object.values<bigint>(PortSpace).includes(space);
}
