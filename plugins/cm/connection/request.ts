/** A connection request as its listener sees it. */
import { type CmRequest, PATH_MTU_BYTES } from '../../../core/spi/index.js';
import { checkAccept, checkReject, requestGone } from '../common/answers.js';
import type { PassiveConnection } from './passive.js';
import type { ReqContents } from '../messages/req-check.js';
import { checkAnswerer } from '../common/transport.js';

export function requestOf(connection: PassiveConnection, contents: ReqContents): CmRequest {
  const { req, transport } = connection;
  const checkWaiting = (): void => {
    if (!connection.waitsForConsumer) throw requestGone('connection');
  };
  return {
    serviceId: req.serviceId,
    transport,
    privateData: contents.privateData,
    remoteGid: req.primaryLocalGid,
    remotePort: contents.remotePort,
    localGid: req.primaryRemoteGid,
    remoteQpn: req.localQpn,
    responderResources: req.initiatorDepth,
    initiatorDepth: req.responderResources,
    retryCount: req.retryCount,
    rnrRetryCount: req.rnrRetryCount,
    pathMtuBytes: PATH_MTU_BYTES[req.pathMtu] ?? 0,
    accept(options) {
      checkWaiting();
      checkAnswerer(options.qp, transport);
      checkAccept(options);
      const { cmElsewhere } = options.qp;
      if (cmElsewhere !== undefined) return connection.handOver(cmElsewhere, options);
      connection.checkUnknown(options.qp);
      connection.accept(options);
      return connection;
    },
    reject(options) {
      checkWaiting();
      checkReject(options);
      connection.reject(options);
    },
  };
}
