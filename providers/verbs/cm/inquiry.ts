/** A peer's question for the queue pair of a datagram service (SIDR), as its listener sees it. */
import {
  type CmResolveAcceptOptions,
  type CmResolveRejectOptions,
  type CmResolveRequest,
  type Gid,
  SpiError,
} from '../../../core/spi/index.js';
import {
  checkResolveAccept,
  checkResolveReject,
  requestGone,
} from '../../../plugins/cm/provider.js';
import { NO_PARAMETERS } from './calls.js';
import type { CmNativeEvent } from './channel.js';
import type { CmIdOwner, CmServices } from './connection.js';
import { goneOr } from './failures.js';

/** The Q_Key that librdmacm always answers with: its struct has no field for another. */
export const RDMA_UDP_QKEY = 0x01234567;
const REJECTED_BY_PROVIDER = 2;

export class VerbsInquiry implements CmResolveRequest, CmIdOwner {
  readonly privateData: Uint8Array;
  readonly remoteGid: Gid;
  readonly remotePort: number;
  readonly localGid: Gid;
  private readonly id: number;
  private waits = true;

  constructor(
    private readonly services: CmServices,
    readonly serviceId: bigint,
    event: CmNativeEvent,
    private readonly onSettled: () => void,
  ) {
    const { remoteGid, remotePort, localGid } = services.calls.describe(event.id);
    this.id = event.id;
    this.privateData = event.privateData;
    this.remoteGid = remoteGid;
    this.remotePort = remotePort;
    this.localGid = localGid;
    services.own(event.id, this);
  }

  /** @throws SpiError('EOPNOTSUPP') for a Q_Key other than RDMA_UDP_QKEY; the rest as the SPI */
  accept(options: CmResolveAcceptOptions): void {
    checkResolveAccept(options);
    this.checkWaiting();
    const { qpn, qkey, privateData } = options;
    if (qkey !== RDMA_UDP_QKEY) {
      throw new SpiError(
        'EOPNOTSUPP',
        `Q_Key 0x${qkey.toString(16)}: librdmacm can only answer with 0x01234567`,
      );
    }
    const parameters = { ...NO_PARAMETERS, qpn };
    this.answer(() => this.services.calls.accept(this.id, parameters, privateData));
  }

  /** The peer always sees status 2, which is all that rdma_reject knows. */
  reject(options: CmResolveRejectOptions): void {
    checkResolveReject(options);
    this.checkWaiting();
    const { status, privateData } = options;
    if (status !== REJECTED_BY_PROVIDER) {
      this.services.logger.debug(`CM: SIDR status ${status} leaves as 2, as rdma_reject does it`);
    }
    this.answer(() => this.services.calls.reject(this.id, privateData));
  }

  onNativeEvent(): void {
    // The kernel has nothing to say to a question that it has handed over.
  }

  /** Unanswered: the kernel says "rejected by service provider". */
  close(): void {
    if (this.waits) this.settle();
  }

  private answer(call: () => void): void {
    try {
      call();
    } catch (error) {
      throw goneOr('resolution', error);
    } finally {
      this.settle();
    }
  }

  private settle(): void {
    this.waits = false;
    this.services.destroyId(this.id);
    this.onSettled();
  }

  private checkWaiting(): void {
    if (!this.waits) throw requestGone('resolution');
  }
}
