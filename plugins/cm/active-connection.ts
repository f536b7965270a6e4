/** The active side: REQ, wait for REP, queue pair to RTR and RTS, RTU. */
import { SpiError, Timer } from '../../core/spi/index.js';
import type { CmConnectOptions, CmEvent } from '../../core/spi/index.js';
import type { CmAction } from './cm-states.js';
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
  /** What is asked for; gone with the REP once that has been answered. */
  private asked: { readonly options: CmConnectOptions; readonly req: CmReq } | undefined;
  private rep: CmRep | undefined;
  private rej: CmRej | undefined;
  private serviceTimeout = 0;
  private rejectReason: number = REJECT_REASON.CONSUMER_REJECT;
  private failure: string | undefined;

  constructor(services: ConnectionServices, path: CmPath, options: CmConnectOptions, req: CmReq) {
    super(services, 'active', 'IDLE', req.localCommId, path);
    this.asked = { options, req };
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
      const plan = this.planFor(rep);
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
  private planFor(rep: CmRep): QpPlan {
    const { req, options } = this.request;
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

  private get request(): NonNullable<ActiveConnection['asked']> {
    if (!this.asked) throw new SpiError('EIO', 'the handshake is over');
    return this.asked;
  }

  private giveUpDetail(): string {
    return this.failure ?? `no answer to ${this.attempts} requests`;
  }

  private startDeadline(): void {
    const { timers, clock } = this.services;
    const { timeoutUs } = this.request.options;
    if (timeoutUs < Infinity) timers.start(this.deadline, clock.now() + timeoutUs);
  }

  protected override act(action: CmAction): boolean {
    const perform = ActiveConnection.ACTIONS[action];
    perform?.(this);
    return perform !== undefined;
  }

  private static readonly ACTIONS: CmActions<ActiveConnection> = {
    sendReq: (c) => c.send({ name: 'REQ', body: c.request.req }),
    startRetries: (c) => c.startRetries(REQ_RETRIES),
    startDeadline: (c) => c.startDeadline(),
    extendWait: (c) => c.extendWait(mraWaitUs(c.serviceTimeout, c.ackTimeout)),
    raiseQp: (c) => c.raiseQp(),
    sendRtu: (c) => {
      const { localCommId, remoteCommId } = c;
      const body = { localCommId, remoteCommId, privateData: new Uint8Array(0) };
      c.send({ name: 'RTU', body });
    },
    rejectRep: (c) => c.sendRej(MESSAGE_REJECTED.rep, c.rejectReason),
    reportEstablished: (c) => {
      const privateData = c.rep?.privateData ?? new Uint8Array(0);
      c.emit({ type: 'established', privateData });
      c.asked = undefined;
      c.rep = undefined;
    },
    reportRejected: (c) => {
      const reason = c.rej?.reason ?? c.rejectReason;
      const consumer = reason === REJECT_REASON.CONSUMER_REJECT;
      const privateData = c.rej?.privateData ?? new Uint8Array(0);
      const info = c.rej && infoOf(c.rej);
      c.emitEnd({ type: 'rejected', reason, consumer, privateData, ...(info && { info }) });
    },
    reportUnreachable: (c) => c.emitEnd({ type: 'unreachable', detail: c.giveUpDetail() }),
    reportTimedOut: (c) => c.emitEnd({ type: 'timed-out' }),
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
