/** Resolves a datagram service to a queue pair: sends SIDR_REQ and waits for SIDR_REP. */
import {
  CmPrivateData,
  type CmResolution,
  type CmResolveOptions,
  DEFAULT_PKEY,
  type Gid,
  gidEquals,
  isPortServiceId,
  Timer,
} from '../../../core/spi/index.js';
import { checkPrivateData } from '../common/checks.js';
import { startWithin } from '../common/consumer.js';
import { cmaHeaderOf } from '../messages/cma-contents.js';
import type { CmPath, ConnectionServices } from '../connection/connection.js';
import { Wait, type Waiter } from '../connection/wait.js';
import type { TransactionId } from '../common/transaction-id.js';
import { type Actions, type Machine, TableRunner } from '../common/table-runner.js';
import { ASKING_TABLE, type SidrAction, type SidrInput, type SidrState } from './states.js';
import { REQ_RETRIES } from '../common/timing.js';
import { NO_DATA } from '../wire/cm-codec.js';
import { joinCmaPrivateData } from '../wire/cma-header.js';
import { type CmSidrRep, type CmSidrReq, SIDR_STATUS, sidrReqCodec } from '../wire/sidr.js';

/** Status of a result without an answer. */
const NO_ANSWER = -1;
const SIDR_REQ_PRIVATE_DATA_BYTES = sidrReqCodec.layout.privateData.length;

/** Services that a resolution needs. */
export interface SidrAskingServices extends Pick<
  ConnectionServices,
  'clock' | 'timers' | 'newTransactionId' | 'send' | 'defer'
> {
  onUnexpected(): void;
}

export class SidrResolution implements CmResolution, Waiter, Machine<SidrState, SidrInput> {
  state: SidrState = 'IDLE';
  private readonly transactionId: TransactionId;
  private readonly wait = new Wait(this);
  private readonly deadline = new Timer(() => this.dispatch('deadline'));
  private verdict: string | undefined;
  private rep: CmSidrRep | undefined;
  private cancelled = false;

  constructor(
    private readonly services: SidrAskingServices,
    private readonly options: CmResolveOptions,
    readonly req: CmSidrReq,
    private readonly path: CmPath,
    private readonly onIdle: () => void,
  ) {
    this.transactionId = services.newTransactionId();
  }

  get remoteGid(): Gid {
    return this.path.gid;
  }

  cancel(): void {
    this.cancelled = true;
    if (this.state !== 'IDLE') this.dispatch('cancel');
  }

  /** False if the answer comes from another peer, or is to another request. */
  receive(rep: CmSidrRep, source: Gid): boolean {
    if (!gidEquals(source, this.path.gid)) return false;
    const { serviceId } = this.req;
    if (rep.status === SIDR_STATUS.VALID_QPN && rep.serviceId !== serviceId) return false;
    if (rep.status === SIDR_STATUS.VALID_QPN && rep.qpn < FIRST_QPN) {
      this.verdict = `SIDR_REP names queue pair ${rep.qpn}, which is no datagram service`;
      this.dispatch('unreachable');
      return true;
    }
    this.rep = rep;
    this.dispatch('SIDR_REP');
    return true;
  }

  /** Takes an ICMP hint that the peer is unreachable. */
  onHint(what: string): void {
    const nowUs = this.services.clock.now();
    const { hints } = this.wait;
    const hint = hints.add(nowUs);
    if (hint === 'known') return;
    if (hint === 'enough') this.verdict = hints.verdict(what, nowUs);
    this.dispatch(hint === 'enough' ? 'unreachable' : 'hint');
  }

  dispatch(input: SidrInput): void {
    SidrResolution.RUNNER.dispatch(this, input);
  }

  onUnexpected(): void {
    this.services.onUnexpected();
  }

  onActionsDone(): void {
    if (this.state === 'IDLE') this.onIdle();
  }

  onWaitOver(): void {
    this.dispatch(this.wait.outcome);
  }

  private report(rep: CmSidrRep | undefined, failure?: 'timed-out' | 'unreachable'): void {
    const { status, qpn, qkey, privateData } = rep ?? NOTHING;
    const { verdict } = this;
    const result = {
      status,
      qpn,
      qkey,
      privateData,
      ...(failure && { failure }),
      ...(verdict !== undefined && { detail: verdict }),
    };
    this.services.defer(() => {
      if (!this.cancelled) this.options.onResult(result);
    });
  }

  private static readonly ACTIONS: Actions<SidrResolution, SidrAction> = {
    sendReq: (r) => {
      r.services.send({ name: 'SIDR_REQ', body: r.req }, r.transactionId, r.path);
    },
    startRetries: ({ wait, services }) => {
      wait.begin(REQ_RETRIES);
      wait.start(services);
    },
    nextRetry: ({ wait, services }) => {
      wait.again();
      wait.start(services);
    },
    hastenRepeat: ({ wait, services }) => wait.hasten(services),
    resumeWait: ({ wait, services }) => {
      wait.repeat();
      wait.start(services);
    },
    startDeadline: (r) => startWithin(r.services, r.deadline, r.options.timeoutUs),
    stopTimers: ({ services, wait, deadline }) => {
      services.timers.stop(wait);
      services.timers.stop(deadline);
    },
    reportAnswer: (r) => r.report(r.rep),
    reportUnreachable: (r) => r.report(undefined, 'unreachable'),
    reportTimedOut: (r) => r.report(undefined, 'timed-out'),
  };

  private static readonly RUNNER = new TableRunner(ASKING_TABLE, SidrResolution.ACTIONS);
}

/** Queue pairs 0 and 1 are for management. */
const FIRST_QPN = 2;

const NOTHING = { status: NO_ANSWER, qpn: 0, qkey: 0, privateData: NO_DATA } as const;

/** The fields that identify one of our requests. */
export interface SidrIdentity {
  readonly requestId: number;
  readonly localGid: Gid;
  /** For rdma_cm's header. */
  readonly sourcePort: number;
}

/** @throws SpiError('EINVAL') when the private data is too long */
export function sidrReqOf(options: CmResolveOptions, identity: SidrIdentity): CmSidrReq {
  const { serviceId, privateData, remoteGid } = options;
  const isCma = isPortServiceId(serviceId);
  const limitBytes = isCma ? CmPrivateData.SIDR_REQ : SIDR_REQ_PRIVATE_DATA_BYTES;
  checkPrivateData('SIDR_REQ', privateData, limitBytes);
  const { requestId, localGid, sourcePort } = identity;
  const header = cmaHeaderOf(localGid, remoteGid, sourcePort);
  return {
    requestId,
    partitionKey: DEFAULT_PKEY,
    serviceId,
    privateData: isCma ? joinCmaPrivateData(header, privateData, limitBytes) : privateData.slice(),
  };
}
