/**
 * What a request asks for: a port of rdma_cm's TCP port space, which is what DAT's connection
 * qualifier is here, or a service id of InfiniBand as it stands.
 */
import { isPortServiceId, PortSpace, serviceIdOf } from '../../spi/index.js';
import { checkU64, checkValue, invalid } from '../../errors/guards.js';
import { integer } from '../../spi/checks/index.js';

/** A port (number), or a service id (bigint). */
export type Service = number | bigint;

/** One of the two. */
export type ServiceOptions =
  | {
      /** Connection qualifier: a port of rdma_cm's TCP port space, 1 to 65535. */
      readonly connQual: number;
      readonly serviceId?: undefined;
    }
  | {
      readonly connQual?: undefined;
      /**
       * Service id (IBTA 12.7.3), 0 to 2^64 - 1, and none of rdma_cm's port spaces: for protocols
       * older than rdma_cm. Requests have no header of rdma_cm's, and 92 bytes of private data.
       * Where the CM knows ports only, as over verbs, it is DAT_MODEL_NOT_SUPPORTED.
       */
      readonly serviceId: bigint;
    };

/** A port: where rdma_cm listens and connects. */
export const CONN_QUAL = integer(1, 65535);

const NOT_OF_A_PORT = 'none of a port of rdma_cm, which is `connQual`: its requests have a header';
const ONE_OF_BOTH = 'left out where `serviceId` is given';

/** @throws DatError DAT_INVALID_PARAMETER, also for both of them, and for neither */
export function checkService(
  operation: string,
  position: number,
  { connQual, serviceId }: ServiceOptions,
): Service {
  if (serviceId === undefined) {
    checkValue(operation, position, 'connQual', connQual, CONN_QUAL);
    return connQual;
  }
  if (connQual !== undefined) {
    throw invalid(operation, position, 'connQual', connQual, ONE_OF_BOTH);
  }
  checkU64(operation, position, 'serviceId', serviceId);
  if (isPortServiceId(serviceId)) {
    throw invalid(operation, position, 'serviceId', serviceId, NOT_OF_A_PORT);
  }
  return serviceId;
}

/** As the messages of the CM have it. */
export function serviceIdFor(service: Service): bigint {
  return typeof service === 'bigint' ? service : serviceIdOf(PortSpace.TCP, service);
}

/** The connection qualifier; 0 where there is a service id alone. */
export function connQualOf(service: Service): number {
  return typeof service === 'bigint' ? 0 : service;
}

/** For messages: `connection qualifier 7471`, `service id 0x100000001`. */
export function serviceText(service: Service): string {
  return typeof service === 'bigint'
    ? `service id 0x${service.toString(16)}`
    : `connection qualifier ${service}`;
}
