/** rdma_cm's 64-bit service ids taken apart: port space in bits 31-16, port in bits 15-0. */
import { isPortServiceId } from '../../../core/spi/modules/cm.js';

/** For people: `port 7000 (service id 0x1061b58)`. */
export function serviceName(serviceId: bigint): string {
  const name = `service id 0x${serviceId.toString(16)}`;
  return isPortServiceId(serviceId) ? `port ${serviceId & 0xffffn} (${name})` : name;
}
