/** A connection request as its listener sees it. */
import { CmPrivateData, PATH_MTU_BYTES, SpiError } from '../../../core/spi/index.js';
import type {
  CmAcceptOptions,
  CmConnection,
  CmRejectOptions,
  CmRequest,
  Gid,
} from '../../../core/spi/index.js';
import { checkParameters, checkPrivateData, checkRange } from '../common/checks.js';
import type { PassiveConnection } from './passive.js';
import { checkConnectable } from './qp-control.js';
import type { ReqContents } from '../messages/req-check.js';
import { checkAnswerer } from '../common/transport.js';
import type { CmTransport } from '../common/transport.js';
import { REJECT_INFO_LENGTH } from '../wire/rej.js';

export class Request implements CmRequest {
  readonly serviceId: bigint;
  readonly transport: CmTransport;
  readonly privateData: Uint8Array;
  readonly remoteGid: Gid;
  readonly remotePort: number;
  readonly localGid: Gid;
  readonly remoteQpn: number;
  readonly responderResources: number;
  readonly initiatorDepth: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  readonly pathMtuBytes: number;

  constructor(
    private readonly connection: PassiveConnection,
    contents: ReqContents,
  ) {
    const { req } = connection;
    this.serviceId = req.serviceId;
    this.transport = connection.transport;
    this.privateData = contents.privateData;
    this.remoteGid = req.primaryLocalGid;
    this.remotePort = contents.remotePort;
    this.localGid = req.primaryRemoteGid;
    this.remoteQpn = req.localQpn;
    this.responderResources = req.initiatorDepth;
    this.initiatorDepth = req.responderResources;
    this.retryCount = req.retryCount;
    this.rnrRetryCount = req.rnrRetryCount;
    this.pathMtuBytes = PATH_MTU_BYTES[req.pathMtu] ?? 0;
  }

  accept(options: CmAcceptOptions): CmConnection {
    this.checkWaiting();
    checkPrivateData('REP', options.privateData, CmPrivateData.REP);
    checkParameters(options);
    checkAnswerer(options.qp, this.transport);
    checkConnectable(options.qp);
    this.connection.checkUnknown(options.qp);
    this.connection.accept(options);
    return this.connection;
  }

  reject(options: CmRejectOptions): void {
    this.checkWaiting();
    checkPrivateData('REJ', options.privateData, CmPrivateData.REJ);
    checkRange('the length of info', options.info?.length ?? 0, 0, REJECT_INFO_LENGTH);
    checkRange('reason', options.reason, 1, 0xffff);
    this.connection.reject(options);
  }

  private checkWaiting(): void {
    if (this.connection.waitsForConsumer) return;
    throw new SpiError(
      'ENOTCONN',
      'the connection request is gone: answered already, or given up by the peer',
    );
  }
}
