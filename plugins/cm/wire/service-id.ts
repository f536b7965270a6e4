/** rdma_cm's 64-bit service ids taken apart: port space in bits 31-16, port in bits 15-0. */
import { PortSpace } from '../../../core/spi/cm.js';

/** IP over InfiniBand's space, for completeness of what may arrive; nothing listens on it here. */
export const IPOIB_PORT_SPACE = 0x0002n;

/** Top byte of ids that a host assigns by itself (IBTA A3.2.1). */
const LOCAL_AGENCY = 0x02n;

const MAX_CMA_SERVICE_ID = 0xffff_ffffn;

/** Bits 63-16: the port space, if it is an id of rdma_cm. */
export function portSpaceOf(serviceId: bigint): bigint {
  return serviceId >> 16n;
}

/** 0 to 65535. */
export function portOf(serviceId: bigint): number {
  return Number(serviceId & 0xffffn);
}

/** Whether requests for this id carry rdma_cm's header: a known port space, nothing above it. */
export function isCmaServiceId(serviceId: bigint): boolean {
  if (serviceId > MAX_CMA_SERVICE_ID) return false;
  const space = portSpaceOf(serviceId);
  return space === IPOIB_PORT_SPACE || Object.values<bigint>(PortSpace).includes(space);
}

export function isLocallyAssigned(serviceId: bigint): boolean {
  return serviceId >> 56n === LOCAL_AGENCY;
}
