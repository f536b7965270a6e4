/** The active side: REQ, wait for REP, queue pair to RTR and RTS, RTU. */
import { type CmConnectOptions, type CmEvent, SpiError, Timer } from '../../../core/spi/index.js';
import { ACTIVE_TABLE, type CmAction, type CmInput, type CmRole } from './states.js';
import { type CmPath, Connection, type ConnectionServices } from './connection.js';
import { messageOf, startWithin } from '../common/consumer.js';
import type { Origin, TransactionId } from '../common/transaction-id.js';
import { agreementOf, type PeerAgreement } from '../messages/peer-agreement.js';
import { QpControl, type QpPlan } from './qp-control.js';
import { REQ_RETRIES, ackTimeoutWithDelay, mraWaitUs } from '../common/timing.js';
import { infoOf } from '../messages/rej.js';
import { type Actions, TableRunner } from '../common/table-runner.js';
import { answererQpn, type CmTransport, transportOfAsker } from '../common/transport.js';
import type { CmMessage } from '../wire/message.js';
import { NO_DATA } from '../wire/cm-codec.js';
import { MESSAGE_MRAED } from '../wire/mra.js';
import { type CmRej, MESSAGE_REJECTED, REJECT_REASON } from '../wire/rej.js';
import type { CmRep } from '../wire/rep.js';
import type { CmReq } from '../wire/req.js';

/** The request of a connection attempt, and its outcome. */
class Attempt {
  rep: CmRep | undefined = undefined;
  agreement: PeerAgreement | undefined = undefined;
  rej: CmRej | undefined = undefined;
  serviceTimeout = 0;
  rejectReason: number = REJECT_REASON.CONSUMER_REJECT;
  failure: string | undefined = undefined;
  /** The consumer's time limit. */
  deadline: Timer | undefined = undefined;
  readonly transport: CmTransport;

  constructor(
    readonly options: CmConnectOptions,
    readonly req: CmReq,
  ) {
    this.transport = transportOfAsker(options.qp);
  }
}

export class ActiveConnection extends Connection {
  protected readonly transactionId: TransactionId;
  protected readonly ackTimeout: number;
  protected readonly onEvent: (event: CmEvent) => void;
  readonly localPort: number;
  /** Dropped once established, to save memory per connection. */
  private attempt: Attempt | undefined;

  /** @param localPort named by the REQ; 0 if it names none */
  constructor(
    services: ConnectionServices,
    path: CmPath,
    options: CmConnectOptions,
    req: CmReq,
    localPort: number,
  ) {
    super(services, 'IDLE', req.localCommId, path);
    this.localPort = localPort;
    this.attempt = new Attempt(options, req);
    this.transactionId = services.newTransactionId();
    this.ackTimeout = req.primaryLocalAckTimeout;
    this.onEvent = options.onEvent;
    this.qpControl = new QpControl(options.qp, this);
    services.table.add(this);
    services.table.addLingering(this);
  }

  get role(): CmRole {
    return 'active';
  }

  protected get messageToMra(): number {
    return MESSAGE_MRAED.req;
  }

  override receive(message: CmMessage, origin: Origin): void {
    if (this.attempt) this.keepAnswer(this.attempt, message, origin);
    super.receive(message, origin);
  }

  private keepAnswer(attempt: Attempt, message: CmMessage, { source }: Origin): void {
    // The first REP or REJ is the answer; later ones are copies, or belong to another request.
    if (message.name === 'REP' && this.remoteCommId === 0) {
      const { req } = attempt;
      attempt.rep = message.body;
      attempt.agreement = agreementOf({ req, source }, req.localCaGuid, message.body.localCaGuid);
    }
    if (message.name === 'REJ') attempt.rej = message.body;
    if (message.name === 'MRA' && message.body.messageMraed === this.messageToMra) {
      attempt.serviceTimeout = message.body.serviceTimeout;
    }
  }

  override onUnreachable(detail: string): void {
    if (this.attempt) this.attempt.failure = detail;
    super.onUnreachable(detail);
  }

  protected override stopTimers(): void {
    super.stopTimers();
    const { deadline } = this.attempt ?? {};
    if (deadline) this.services.timers.stop(deadline);
  }

  private raiseQp(): void {
    const attempt = this.present;
    const { rep, transport, agreement } = attempt;
    if (!rep) throw new SpiError('EIO', 'REP_RCVD without a REP');
    this.remoteCommId = rep.localCommId;
    this.remoteGuid = rep.localCaGuid;
    this.sourcePort = agreement?.sourcePort ?? 0;
    this.remoteQpn = answererQpn(transport, rep);
    if (this.services.table.findRemoteQp(this.remoteQpn, rep.localCaGuid, this.remoteGid)) {
      attempt.rejectReason = REJECT_REASON.STALE_CONNECTION;
      this.dispatch('stale');
      return;
    }
    this.services.table.addRemote(this);
    this.dispatch(this.tryRaiseQp(attempt, rep) ? 'qpReady' : 'qpFailed');
  }

  private tryRaiseQp(attempt: Attempt, rep: CmRep): boolean {
    try {
      const plan = this.planFor(attempt, rep);
      this.qpControl?.toRtr(plan);
      this.qpControl?.toRts(plan);
      return true;
    } catch (error) {
      attempt.failure = `the queue pair cannot be connected: ${messageOf(error)}`;
      attempt.rejectReason = REJECT_REASON.CONSUMER_REJECT;
      return false;
    }
  }

  /** @throws SpiError('EINVAL') for a REP with an impossible queue pair number */
  private planFor({ req, options, agreement }: Attempt, rep: CmRep): QpPlan {
    const { remoteQpn } = this;
    if (!agreement || remoteQpn < 2)
      throw new SpiError('EINVAL', `REP names queue pair ${remoteQpn}`);
    return {
      addressVector: { ...this.path, peer: agreement },
      pathMtuBytes: agreement.pathMtuBytes,
      accessFlags: options.accessFlags,
      destinationQpn: remoteQpn,
      receivePsn: req.startingPsn,
      sendPsn: rep.startingPsn,
      responderResources: Math.min(req.responderResources, rep.initiatorDepth),
      initiatorDepth: Math.min(req.initiatorDepth, rep.responderResources),
      minRnrTimer: options.minRnrTimer,
      ackTimeout: ackTimeoutWithDelay(req.primaryLocalAckTimeout, rep.targetAckDelay),
      retryCount: options.retryCount,
      rnrRetryCount: rep.rnrRetryCount,
    };
  }

  private get present(): Attempt {
    if (!this.attempt) throw new SpiError('EIO', 'the handshake is over');
    return this.attempt;
  }

  private giveUpDetail(): string {
    return this.present.failure ?? `no answer to ${this.attempts} requests`;
  }

  private startDeadline(): void {
    const { options } = this.present;
    const deadline = new Timer(() => void this.dispatch('deadline'));
    this.present.deadline = deadline;
    startWithin(this.services, deadline, options.timeoutUs);
  }

  dispatch(input: CmInput): boolean {
    return ActiveConnection.RUNNER.dispatch(this, input);
  }

  private static readonly ACTIONS: Actions<ActiveConnection, CmAction> = {
    ...Connection.COMMON,
    sendReq: (c) => c.send({ name: 'REQ', body: c.present.req }),
    startRetries: (c) => c.startRetries(REQ_RETRIES),
    startDeadline: (c) => c.startDeadline(),
    extendWait: (c) => c.extendWait(mraWaitUs(c.present.serviceTimeout, c.ackTimeout)),
    raiseQp: (c) => c.raiseQp(),
    sendRtu: (c) => c.send({ name: 'RTU', body: { ...c.ids, privateData: NO_DATA } }),
    rejectRep: (c) => c.sendRej(MESSAGE_REJECTED.rep, c.present.rejectReason),
    reportEstablished: (c) => {
      c.emit({ type: 'established', privateData: c.present.rep?.privateData ?? NO_DATA });
      c.forgetWait();
      c.attempt = undefined;
    },
    reportRejected: (c) => {
      const { rej, rejectReason } = c.present;
      const reason = rej?.reason ?? rejectReason;
      const consumer = reason === REJECT_REASON.CONSUMER_REJECT;
      const privateData = rej?.privateData ?? NO_DATA;
      const info = rej && infoOf(rej);
      c.emitEnd({ type: 'rejected', reason, consumer, privateData, ...(info && { info }) });
    },
    reportUnreachable: (c) => c.emitEnd({ type: 'unreachable', detail: c.giveUpDetail() }),
    reportTimedOut: (c) => c.emitEnd({ type: 'timed-out' }),
  };

  private static readonly RUNNER = new TableRunner(ACTIVE_TABLE, ActiveConnection.ACTIONS);
}
