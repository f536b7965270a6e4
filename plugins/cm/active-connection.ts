/** The active side: REQ, wait for REP, queue pair to RTR and RTS, RTU. */
import { SpiError, Timer } from '../../core/spi/index.js';
import type { CmConnectOptions, CmEvent } from '../../core/spi/index.js';
import { Connection } from './connection.js';
import type { CmActions, CmPath, ConnectionServices, TransactionId } from './connection.js';
import { agreedMtuBytes } from './local-mtu.js';
import { QpControl } from './qp-control.js';
import type { QpPlan } from './qp-control.js';
import { REQ_RETRIES, ackTimeoutWithDelay, mraWaitUs } from './timing.js';
import { infoOf } from './rej-message.js';
import { answererQpn, transportOfAsker } from './transport.js';
import type { CmTransport } from './transport.js';
import type { CmMessage } from './wire/message.js';
import { MESSAGE_MRAED } from './wire/mra.js';
import type { CmRej } from './wire/rej.js';
import { MESSAGE_REJECTED } from './wire/rej.js';
import { REJECT_REASON } from './wire/reject-reason.js';
import type { CmRep } from './wire/rep.js';
import type { CmReq } from './wire/req.js';

export class ActiveConnection extends Connection {
  protected readonly transactionId: TransactionId;
  protected readonly messageToMra = MESSAGE_MRAED.req;
  protected readonly ackTimeout: number;
  protected readonly onEvent: (event: CmEvent) => void;
  private readonly deadline = new Timer(() => void this.dispatch('deadline'));
  private readonly transport: CmTransport;
  private rep: CmRep | undefined;
  private rej: CmRej | undefined;
  private serviceTimeout = 0;
  private rejectReason: number = REJECT_REASON.CONSUMER_REJECT;
  private failure: string | undefined;

  constructor(
    services: ConnectionServices,
    path: CmPath,
    private readonly options: CmConnectOptions,
    private readonly req: CmReq,
  ) {
    super(services, 'active', 'IDLE', req.localCommId, path);
    this.transactionId = services.newTransactionId();
    this.ackTimeout = req.primaryLocalAckTimeout;
    this.onEvent = options.onEvent;
    this.transport = transportOfAsker(options.qp);
    this.qpControl = new QpControl(options.qp, () => void this.dispatch('commEst'));
    services.table.add(this);
    services.table.addLingering(this);
  }

  override receive(message: CmMessage, transactionId: TransactionId): void {
    // The first REP or REJ is the answer; later ones repeat it or belong to nobody.
    if (message.name === 'REP' && this.remoteCommId === 0) this.rep = message.body;
    if (message.name === 'REJ') this.rej = message.body;
    if (message.name === 'MRA' && message.body.messageMraed === this.messageToMra) {
      this.serviceTimeout = message.body.serviceTimeout;
    }
    super.receive(message, transactionId);
  }

  /** The network says that the peer does not answer. */
  onUnreachable(): void {
    this.failure = 'the network reports that the address is unreachable';
    this.dispatch('unreachable');
  }

  protected override stopTimers(): void {
    super.stopTimers();
    this.services.timers.stop(this.deadline);
  }

  private raiseQp(): void {
    const { rep } = this;
    if (!rep) throw new SpiError('EIO', 'REP_RCVD without a REP');
    this.remoteCommId = rep.localCommId;
    this.remoteGuid = rep.localCaGuid;
    this.remoteQpn = answererQpn(this.transport, rep);
    if (this.services.table.findRemoteQp(this.remoteQpn, rep.localCaGuid, this.remoteGid)) {
      this.rejectReason = REJECT_REASON.STALE_CONNECTION;
      this.dispatch('stale');
      return;
    }
    this.services.table.addRemote(this);
    this.dispatch(this.tryRaiseQp(rep) ? 'qpReady' : 'qpFailed');
  }

  private tryRaiseQp(rep: CmRep): boolean {
    try {
      const plan = this.plan(rep);
      this.qpControl?.toRtr(plan);
      this.qpControl?.toRts(plan);
      return true;
    } catch (error) {
      this.failure = `the queue pair cannot be connected: ${messageOf(error)}`;
      this.rejectReason = REJECT_REASON.CONSUMER_REJECT;
      return false;
    }
  }

  /** @throws SpiError('EINVAL') for a REP that no queue pair can follow */
  private plan(rep: CmRep): QpPlan {
    const { req, options } = this;
    const { remoteQpn } = this;
    if (remoteQpn < 2) throw new SpiError('EINVAL', `REP names queue pair ${remoteQpn}`);
    return {
      addressVector: { gid: this.path.gid, localGidIndex: this.path.localGidIndex },
      pathMtuBytes: agreedMtuBytes(req, rep.vendorId),
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

  private giveUpDetail(): string {
    return this.failure ?? `no answer to ${this.attempts} requests`;
  }

  private startDeadline(): void {
    const { timers, clock } = this.services;
    const { timeoutUs } = this.options;
    if (timeoutUs < Infinity) timers.start(this.deadline, clock.now() + timeoutUs);
  }

  protected readonly actions: CmActions = {
    sendReq: () => this.send({ name: 'REQ', body: this.req }),
    startRetries: () => this.startRetries(REQ_RETRIES),
    startDeadline: () => this.startDeadline(),
    extendWait: () => this.extendWait(mraWaitUs(this.serviceTimeout, this.ackTimeout)),
    raiseQp: () => this.raiseQp(),
    sendRtu: () => {
      const { localCommId, remoteCommId } = this;
      const body = { localCommId, remoteCommId, privateData: new Uint8Array(0) };
      this.send({ name: 'RTU', body });
    },
    rejectRep: () => this.sendRej(MESSAGE_REJECTED.rep, this.rejectReason),
    reportEstablished: () => {
      const privateData = this.rep?.privateData ?? new Uint8Array(0);
      this.emit({ type: 'established', privateData });
    },
    reportRejected: () => {
      const reason = this.rej?.reason ?? this.rejectReason;
      const consumer = reason === REJECT_REASON.CONSUMER_REJECT;
      const privateData = this.rej?.privateData ?? new Uint8Array(0);
      const info = this.rej && infoOf(this.rej);
      this.emitEnd({ type: 'rejected', reason, consumer, privateData, ...(info && { info }) });
    },
    reportUnreachable: () => this.emitEnd({ type: 'unreachable', detail: this.giveUpDetail() }),
    reportTimedOut: () => this.emitEnd({ type: 'timed-out' }),
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
