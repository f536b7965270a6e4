/** The passive side: REQ to the consumer, queue pair to RTR, REP; by RTU, queue pair to RTS. */
import { SpiError } from '../../core/spi/index.js';
import type {
  CmAcceptOptions,
  CmEvent,
  CmRejectOptions,
  DeviceAttributes,
  QueuePair,
} from '../../core/spi/index.js';
import type { CmAction } from './cm-states.js';
import { Connection } from './connection.js';
import type { CmActions, CmPath, ConnectionServices, TransactionId } from './connection.js';
import { agreedMtuBytes, agreedVendorId } from './local-mtu.js';
import { QpControl } from './qp-control.js';
import type { QpPlan } from './qp-control.js';
import { rejOf } from './rej-message.js';
import { MRA_SERVICE_TIMEOUT, REQ_REJECTED_US, mraWaitUs, repRetries } from './timing.js';
import { answererFields } from './transport.js';
import type { CmTransport } from './transport.js';
import type { CmMessage } from './wire/message.js';
import { MESSAGE_MRAED } from './wire/mra.js';
import { MESSAGE_REJECTED } from './wire/rej.js';
import { REJECT_REASON } from './wire/reject-reason.js';
import type { CmRep } from './wire/rep.js';
import type { CmReq } from './wire/req.js';

const NO_DATA = new Uint8Array(0);
const CONSUMER_REJECTS: CmRejectOptions = {
  reason: REJECT_REASON.CONSUMER_REJECT,
  privateData: NO_DATA,
};

export interface PassiveInit {
  readonly req: CmReq;
  readonly transport: CmTransport;
  readonly transactionId: TransactionId;
  readonly localCommId: number;
  readonly path: CmPath;
  readonly deviceAttributes: DeviceAttributes;
  readonly startingPsn: number;
  /** The request no longer waits for the consumer: answered, or given up. */
  readonly onSettled: () => void;
  /** The connection is no longer half open. */
  readonly onClosedOrOpen: () => void;
}

export class PassiveConnection extends Connection {
  readonly transport: CmTransport;
  protected readonly transactionId: TransactionId;
  protected readonly messageToMra = MESSAGE_MRAED.rep;
  protected readonly ackTimeout: number;
  protected onEvent: ((event: CmEvent) => void) | undefined;
  private readonly startingPsn: number;
  /** What was asked for, and the answer: gone when the connection is established. */
  private init: PassiveInit | undefined;
  private plan: QpPlan | undefined;
  private rep: CmRep | undefined;
  private rejection = CONSUMER_REJECTS;
  private serviceTimeout = 0;
  private failure: string | undefined;
  private settled = false;
  private halfOpen = true;

  constructor(services: ConnectionServices, init: PassiveInit) {
    super(services, 'passive', 'REQ_RCVD', init.localCommId, init.path);
    this.init = init;
    this.transport = init.transport;
    this.transactionId = init.transactionId;
    this.ackTimeout = init.req.primaryLocalAckTimeout;
    this.startingPsn = init.startingPsn;
    this.remoteCommId = init.req.localCommId;
    this.remoteGuid = init.req.localCaGuid;
    this.remoteQpn = init.req.localQpn;
    services.table.add(this);
    services.table.addRemote(this);
  }

  get req(): CmReq {
    return this.request.req;
  }

  get waitsForConsumer(): boolean {
    return this.state === 'REQ_RCVD' || this.state === 'MRA_REQ_SENT';
  }

  /** @throws SpiError('EINVAL') when the peer may still know the queue pair by a connection */
  checkUnknown({ qpn }: QueuePair): void {
    this.services.table.checkUnknown(qpn, this.remoteGid);
  }

  /** @throws SpiError of the provider when the queue pair does not become ready to receive */
  accept(options: CmAcceptOptions): void {
    const qpControl = new QpControl(options.qp, () => void this.dispatch('commEst'));
    this.plan = this.planFor(options);
    try {
      qpControl.toRtr(this.plan);
    } catch (error) {
      qpControl.release();
      throw error;
    }
    this.qpControl = qpControl;
    this.onEvent = options.onEvent;
    this.rep = this.repFor(options, this.plan);
    this.services.table.addLingering(this);
    this.dispatch('accept');
  }

  reject(options: CmRejectOptions): void {
    const { reason, privateData, info } = options;
    this.rejection = {
      reason,
      privateData: privateData.slice(),
      ...(info && { info: info.slice() }),
    };
    this.dispatch('reject');
  }

  override receive(message: CmMessage, transactionId: TransactionId): void {
    if (message.name === 'MRA' && message.body.messageMraed === this.messageToMra) {
      this.serviceTimeout = message.body.serviceTimeout;
    }
    if (message.name === 'REJ') this.failure = `the peer rejected it (${message.body.reason})`;
    super.receive(message, transactionId);
  }

  override dispatch(input: Parameters<Connection['dispatch']>[0]): boolean {
    const expected = super.dispatch(input);
    this.settle();
    return expected;
  }

  override end(): void {
    super.end();
    this.settle();
  }

  /** The network says that the peer does not answer. */
  onUnreachable(): void {
    this.failure = 'the network reports that the address is unreachable';
    this.dispatch('unreachable');
  }

  private settle(): void {
    if (!this.settled && !this.waitsForConsumer) {
      this.settled = true;
      this.init?.onSettled();
    }
    const open = ['REQ_RCVD', 'MRA_REQ_SENT', 'REP_SENT', 'MRA_REP_RCVD'].includes(this.state);
    if (this.halfOpen && !open) {
      this.halfOpen = false;
      this.init?.onClosedOrOpen();
    }
  }

  private planFor(options: CmAcceptOptions): QpPlan {
    const { path } = this;
    const { req, deviceAttributes } = this.request;
    const { maxResponderResources, maxInitiatorDepth } = deviceAttributes;
    return {
      addressVector: { gid: path.gid, localGidIndex: path.localGidIndex },
      pathMtuBytes: agreedMtuBytes(req, agreedVendorId(req, deviceAttributes)),
      accessFlags: options.accessFlags,
      destinationQpn: req.localQpn,
      receivePsn: this.startingPsn,
      sendPsn: req.startingPsn,
      responderResources: Math.min(
        options.responderResources,
        req.initiatorDepth,
        maxResponderResources,
      ),
      initiatorDepth: Math.min(options.initiatorDepth, req.responderResources, maxInitiatorDepth),
      minRnrTimer: options.minRnrTimer,
      ackTimeout: req.primaryLocalAckTimeout,
      retryCount: req.retryCount,
      rnrRetryCount: req.rnrRetryCount,
    };
  }

  private repFor(options: CmAcceptOptions, plan: QpPlan): CmRep {
    const { req, deviceAttributes } = this.request;
    return {
      localCommId: this.localCommId,
      remoteCommId: this.remoteCommId,
      ...answererFields(this.transport, options.qp),
      localQkey: 0,
      vendorId: agreedVendorId(req, deviceAttributes),
      startingPsn: plan.receivePsn,
      responderResources: plan.responderResources,
      initiatorDepth: plan.initiatorDepth,
      targetAckDelay: deviceAttributes.localAckDelay,
      failoverAccepted: 0,
      endToEndFlowControl: 0,
      rnrRetryCount: options.rnrRetryCount,
      localCaGuid: this.services.guid,
      privateData: options.privateData.slice(),
    };
  }

  /** RTR to RTS; a queue pair that has failed meanwhile ends the connection. */
  private startQp(): void {
    try {
      if (this.plan) this.qpControl?.toRts(this.plan);
    } catch (error) {
      this.failure = `the queue pair cannot send: ${String(error)}`;
      this.dispatch('qpFailed');
      return;
    }
    this.dispatch('qpReady');
  }

  /** @param waitUs the peer has been asked to wait so long before it repeats its REQ */
  private sendRejection(localCommId: number, waitUs = 0): void {
    const { remoteCommId, rejection, transactionId, services } = this;
    const messageRejected = MESSAGE_REJECTED.req;
    const body = rejOf({ localCommId, remoteCommId, messageRejected, ...rejection });
    const asker = {
      commId: remoteCommId,
      guid: this.remoteGuid,
      gid: this.remoteGid,
      transactionId,
    };
    services.rejected.add(asker, body, services.clock.now(), REQ_REJECTED_US + waitUs);
    this.send({ name: 'REJ', body });
  }

  private get request(): PassiveInit {
    if (!this.init) throw new SpiError('EIO', 'the handshake is over');
    return this.init;
  }

  private giveUpDetail(): string {
    return this.failure ?? `no answer to ${this.attempts} replies`;
  }

  protected override act(action: CmAction): boolean {
    const perform = PassiveConnection.ACTIONS[action];
    perform?.(this);
    return perform !== undefined;
  }

  private static readonly ACTIONS: CmActions<PassiveConnection> = {
    sendMraReq: (c) => {
      const { localCommId, remoteCommId } = c;
      const body = {
        localCommId,
        remoteCommId,
        messageMraed: MESSAGE_MRAED.req,
        serviceTimeout: MRA_SERVICE_TIMEOUT,
        privateData: new Uint8Array(0),
      };
      c.send({ name: 'MRA', body });
    },
    sendRep: (c) => {
      if (!c.rep) throw new SpiError('EIO', 'REP_SENT without a REP');
      c.send({ name: 'REP', body: c.rep });
    },
    startRetries: (c) => {
      const { localCmResponseTimeout, maxCmRetries } = c.request.req;
      c.startRetries(repRetries(localCmResponseTimeout, maxCmRetries));
    },
    extendWait: (c) => c.extendWait(mraWaitUs(c.serviceTimeout, c.ackTimeout)),
    startQp: (c) => c.startQp(),
    rejectReq: (c) => c.sendRejection(0),
    rejectReqMra: (c) => {
      c.sendRejection(c.localCommId, mraWaitUs(MRA_SERVICE_TIMEOUT, c.ackTimeout));
    },
    reportEstablished: (c) => {
      c.emit({ type: 'established', privateData: NO_DATA });
      c.settle();
      c.init = undefined;
      c.plan = undefined;
      c.rep = undefined;
    },
    reportAcceptFailed: (c) => c.emitEnd({ type: 'accept-failed', detail: c.giveUpDetail() }),
  };
}
