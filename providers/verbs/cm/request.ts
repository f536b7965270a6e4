/** A connection request as its listener sees it. */
import { CmPrivateData, PATH_MTU_BYTES, QpState } from '../../../core/spi/index.js';
import type {
  CmAcceptOptions,
  CmConnection,
  CmRejectOptions,
  CmRequest,
  Gid,
} from '../../../core/spi/index.js';
import { checkPrivateData, checkRange } from '../../../plugins/cm/common/checks.js';
import { REJECT_REASON, rejectReasonName } from '../../../plugins/cm/wire/reject-reason.js';
import { REJECT_INFO_LENGTH } from '../../../plugins/cm/wire/rej.js';
import type { CmNativeEvent } from './channel.js';
import type { CmServices } from './connection.js';
import { PassiveConnection } from './passive.js';

export class VerbsRequest implements CmRequest {
  readonly transport = 'rc';
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
  private readonly connection: PassiveConnection;
  private settled = false;

  /** @throws SpiError when the peer has given up meanwhile */
  constructor(
    private readonly services: CmServices,
    readonly serviceId: bigint,
    event: CmNativeEvent,
    private readonly onSettled: () => void,
  ) {
    const description = services.calls.describe(event.id);
    const rtr = services.calls.queuePairAttributes(event.id, QpState.RTR);
    this.connection = new PassiveConnection(services, event.id, description);
    this.privateData = event.privateData;
    this.remoteGid = description.remoteGid;
    this.remotePort = description.remotePort;
    this.localGid = description.localGid;
    this.remoteQpn = event.qpn;
    // rdma_cm has crossed them over already.
    this.responderResources = event.responderResources;
    this.initiatorDepth = event.initiatorDepth;
    this.retryCount = event.retryCount;
    this.rnrRetryCount = event.rnrRetryCount;
    this.pathMtuBytes = PATH_MTU_BYTES[rtr.word('PATH_MTU')] ?? 0;
  }

  accept(options: CmAcceptOptions): CmConnection {
    try {
      this.connection.accept(options);
      return this.connection;
    } finally {
      this.settle();
    }
  }

  /** The peer always sees reason 28, which is all that rdma_reject knows. */
  reject(options: CmRejectOptions): void {
    const { reason, privateData, info } = options;
    checkPrivateData('REJ', privateData, CmPrivateData.REJ);
    checkRange('the length of info', info?.length ?? 0, 0, REJECT_INFO_LENGTH);
    checkRange('reason', reason, 1, 0xffff);
    if (reason !== REJECT_REASON.CONSUMER_REJECT || info) {
      this.services.logger.debug(
        `CM: ${rejectReasonName(reason)} leaves as consumer reject, as rdma_reject does it`,
      );
    }
    try {
      this.connection.reject(privateData);
    } finally {
      this.settle();
    }
  }

  /** No consumer is there to answer it: the peer is refused. */
  refuse(): void {
    this.connection.close();
    this.settle();
  }

  private settle(): void {
    if (this.settled || this.connection.waitsForConsumer) return;
    this.settled = true;
    this.onSettled();
  }
}
