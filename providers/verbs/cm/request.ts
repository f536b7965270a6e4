/** A connection request as its listener sees it. */
import { type CmRequest, PATH_MTU_BYTES, QpState } from '../../../core/spi/index.js';
import { REJECT_REASON, checkReject, rejectReasonName } from '../../../plugins/cm/provider.js';
import type { CmNativeEvent } from './channel.js';
import type { CmServices } from './connection.js';
import { PassiveConnection } from './passive.js';

/**
 * The request of an event, and the connection that comes of it.
 * @param onSettled it waits for the consumer no longer
 * @throws SpiError when the peer has given up meanwhile
 */
export function requestOf(
  services: CmServices,
  serviceId: bigint,
  event: CmNativeEvent,
  onSettled: () => void,
): { readonly request: CmRequest; readonly connection: PassiveConnection } {
  const description = services.calls.describe(event.id);
  const rtr = services.calls.queuePairAttributes(event.id, QpState.RTR);
  const connection = new PassiveConnection(services, event.id, description, onSettled);
  const request: CmRequest = {
    serviceId,
    transport: 'rc',
    privateData: event.privateData,
    remoteGid: description.remoteGid,
    remotePort: description.remotePort,
    localGid: description.localGid,
    remoteQpn: event.qpn,
    // rdma_cm has crossed them over already.
    responderResources: event.responderResources,
    initiatorDepth: event.initiatorDepth,
    retryCount: event.retryCount,
    rnrRetryCount: event.rnrRetryCount,
    pathMtuBytes: PATH_MTU_BYTES[rtr.word('PATH_MTU')] ?? 0,
    accept(options) {
      connection.accept(options);
      return connection;
    },
    /** The peer always sees reason 28, which is all that rdma_reject knows. */
    reject(options) {
      checkReject(options);
      const { reason, info, privateData } = options;
      if (reason !== REJECT_REASON.CONSUMER_REJECT || info) {
        const name = rejectReasonName(reason);
        services.logger.debug(`CM: ${name} leaves as consumer reject, as rdma_reject does it`);
      }
      connection.reject(privateData);
    },
  };
  return { request, connection };
}
