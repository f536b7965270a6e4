/** A peer's request for the queue pair of a datagram service, as its listener gets it. */
import {
  type CmResolveAcceptOptions,
  type CmResolveRejectOptions,
  type CmResolveRequest,
  type Gid,
  Timer,
} from '../../../core/spi/index.js';
import { checkResolveAccept, checkResolveReject, requestGone } from '../common/answers.js';
import { startWithin } from '../common/consumer.js';
import type { CmaContents } from '../messages/cma-contents.js';
import type { CmPath, ConnectionServices } from '../connection/connection.js';
import type { TransactionId } from '../common/transaction-id.js';
import { type Actions, type Machine, TableRunner } from '../common/table-runner.js';
import { ASKED_TABLE, type SidrAction, type SidrInput, type SidrState } from './states.js';
import { SIDR_ANSWERED_US, SIDR_UNANSWERED_US } from '../common/timing.js';
import { NO_DATA } from '../wire/cm-codec.js';
import { type CmSidrRep, type CmSidrReq, SIDR_STATUS } from '../wire/sidr.js';

export interface SidrInquiryInit {
  readonly req: CmSidrReq;
  readonly contents: CmaContents;
  readonly transactionId: TransactionId;
  readonly path: CmPath;
  readonly localGid: Gid;
  /** Called when the request no longer waits for the consumer. */
  readonly onSettled: () => void;
  /** Called when the request can be forgotten. */
  readonly onIdle: () => void;
}

export type SidrAskedServices = Pick<ConnectionServices, 'clock' | 'timers' | 'send'>;

export class SidrInquiry implements CmResolveRequest, Machine<SidrState, SidrInput> {
  state: SidrState = 'SIDR_REQ_RCVD';
  private readonly life = new Timer(() => this.dispatch('expired'));
  private rep: CmSidrRep;

  constructor(
    private readonly services: SidrAskedServices,
    private readonly init: SidrInquiryInit,
  ) {
    this.rep = sidrRepOf(init.req, { status: SIDR_STATUS.REJECTED_BY_PROVIDER });
    this.startLife();
  }

  get waitsForConsumer(): boolean {
    return this.state === 'SIDR_REQ_RCVD';
  }

  get serviceId(): bigint {
    return this.init.req.serviceId;
  }

  get privateData(): Uint8Array {
    return this.init.contents.privateData;
  }

  get remotePort(): number {
    return this.init.contents.remotePort;
  }

  get remoteGid(): Gid {
    return this.init.path.gid;
  }

  get localGid(): Gid {
    return this.init.localGid;
  }

  accept(options: CmResolveAcceptOptions): void {
    this.checkWaiting();
    checkResolveAccept(options);
    const { qpn, qkey, privateData } = options;
    const answer = { status: SIDR_STATUS.VALID_QPN, qpn, qkey, privateData: privateData.slice() };
    this.rep = sidrRepOf(this.init.req, answer);
    this.dispatch('accept');
  }

  reject(options: CmResolveRejectOptions): void {
    this.checkWaiting();
    checkResolveReject(options);
    const { status, privateData } = options;
    this.rep = sidrRepOf(this.init.req, { status, privateData: privateData.slice() });
    this.dispatch('reject');
  }

  /** Returns false if the input is unexpected. */
  dispatch(input: SidrInput): boolean {
    return SidrInquiry.RUNNER.dispatch(this, input);
  }

  onActionsDone(from: SidrState): void {
    if (from === 'SIDR_REQ_RCVD' && !this.waitsForConsumer) this.init.onSettled();
    if (this.state === 'IDLE') this.init.onIdle();
  }

  private startLife(): void {
    const lifeUs = this.waitsForConsumer ? SIDR_UNANSWERED_US : SIDR_ANSWERED_US;
    startWithin(this.services, this.life, lifeUs);
  }

  private checkWaiting(): void {
    if (!this.waitsForConsumer) throw requestGone('resolution');
  }

  private static readonly ACTIONS: Actions<SidrInquiry, SidrAction> = {
    sendRep: ({ init, services, rep }) => {
      services.send({ name: 'SIDR_REP', body: rep }, init.transactionId, init.path);
    },
    startLife: (inquiry) => inquiry.startLife(),
    stopTimers: ({ services, life }) => services.timers.stop(life),
  };

  private static readonly RUNNER = new TableRunner(ASKED_TABLE, SidrInquiry.ACTIONS);
}

/** Builds the answer to a request; it repeats the service id. */
export function sidrRepOf(
  { requestId, serviceId }: CmSidrReq,
  answer: Pick<CmSidrRep, 'status'> & Partial<CmSidrRep>,
): CmSidrRep {
  return {
    requestId,
    additionalInfoLength: 0,
    vendorId: 0,
    qpn: 0,
    serviceId,
    qkey: 0,
    additionalInfo: NO_DATA,
    privateData: NO_DATA,
    ...answer,
  };
}
