/** The passive side: REQ to the consumer, queue pair to RTR, REP; on RTU, queue pair to RTS. */
import {
  type CmAcceptOptions,
  type CmConnection,
  type CmElsewhere,
  type CmEvent,
  type CmRejectOptions,
  type CmRequest,
  type DeviceAttributes,
  type Gid,
  PATH_MTU_BYTES,
  portOfServiceId,
  type QueuePair,
  SpiError,
} from '../../../core/spi/index.js';
import { PEER_AGREEMENT, withoutOffers } from '../../../core/spi/internal/index.js';
import { madOf, type Origin, type TransactionId } from '../common/transaction-id.js';
import { type Actions, TableRunner } from '../common/table-runner.js';
import { MRA_SERVICE_TIMEOUT, mraWaitUs, repRetries, REQ_ANSWERED_US } from '../common/timing.js';
import { answererFields, checkAnswerer, type CmTransport } from '../common/transport.js';
import type { Asker } from '../messages/answered-requests.js';
import { agreementOf, type PeerAgreement } from '../messages/peer-agreement.js';
import { rejOf } from '../messages/rej.js';
import { NO_DATA } from '../wire/cm-codec.js';
import type { CmMessage } from '../wire/message.js';
import { MESSAGE_MRAED } from '../wire/mra.js';
import { MESSAGE_REJECTED, REJECT_REASON } from '../wire/rej.js';
import type { CmRep } from '../wire/rep.js';
import type { CmReq } from '../wire/req.js';
import { type CmPath, Connection, type ConnectionServices } from './connection.js';
import { QpControl, type QpPlan } from './qp-control.js';
import { type CmAction, type CmInput, type CmRole, PASSIVE_TABLE } from './states.js';
import { checkAccept, checkReject, requestGone } from '../common/answers.js';
import type { ReqContents } from '../messages/req-check.js';

// The local stub of a connection that was handed to another process.

/** Does nothing: the other process establishes and ends the connection. */
class HandedConnection implements CmConnection {
  readonly state = 'HANDED_OVER';

  constructor(
    readonly remoteGid: Gid,
    readonly localPort: number,
  ) {}

  disconnect(): void {
    // With the queue pair.
  }

  notifyEstablished(): void {
    // The data has come there.
  }

  abandon(): void {
    // As `disconnect`.
  }

  flightRecord(): readonly string[] {
    return [];
  }
}

const CONSUMER_REJECTS: CmRejectOptions = {
  reason: REJECT_REASON.CONSUMER_REJECT,
  privateData: NO_DATA,
};

export interface PassiveInit {
  readonly req: CmReq;
  readonly transport: CmTransport;
  /** The origin of the REQ. */
  readonly origin: Origin;
  readonly localCommId: number;
  readonly path: CmPath;
  readonly deviceAttributes: DeviceAttributes;
  readonly startingPsn: number;
  /** Called when the request no longer waits for the consumer. */
  readonly onSettled: () => void;
  /** Called when the connection is no longer half open. */
  readonly onClosedOrOpen: () => void;
}

/** The plan, the answer and the outcome of a handshake. */
class Handshake {
  plan: QpPlan | undefined = undefined;
  rep: CmRep | undefined = undefined;
  rejection = CONSUMER_REJECTS;
  serviceTimeout = 0;
  failure: string | undefined = undefined;
  settled = false;
  halfOpen = true;
  readonly agreement: PeerAgreement;

  /** @param guid our GUID for REP, with the features that we offer this peer */
  constructor(
    readonly init: PassiveInit,
    readonly guid: bigint,
  ) {
    const { req, origin } = init;
    this.agreement = agreementOf({ req, source: origin.source }, req.localCaGuid, guid);
  }
}

export class PassiveConnection extends Connection {
  protected readonly transactionId: TransactionId;
  protected readonly ackTimeout: number;
  protected onEvent: ((event: CmEvent) => void) | undefined = undefined;
  readonly localPort: number;
  /** Dropped once established, to save memory per connection. */
  private handshake: Handshake | undefined;

  constructor(services: ConnectionServices, init: PassiveInit) {
    super(services, 'REQ_RCVD', init.localCommId, init.path);
    const { req, origin } = init;
    this.handshake = new Handshake(init, withoutOffers(services.guid, PEER_AGREEMENT.CHANNEL));
    this.sourcePort = this.handshake.agreement.sourcePort ?? 0;
    this.localPort = portOfServiceId(req.serviceId);
    this.transactionId = origin.transactionId;
    this.ackTimeout = req.primaryLocalAckTimeout;
    this.remoteCommId = req.localCommId;
    this.remoteGuid = req.localCaGuid;
    this.remoteQpn = req.localQpn;
    services.notes.input(this, 'REQ', 'IDLE', 'REQ_RCVD');
    services.table.add(this);
    services.table.addRemote(this);
  }

  get role(): CmRole {
    return 'passive';
  }

  protected get messageToMra(): number {
    return MESSAGE_MRAED.rep;
  }

  get req(): CmReq {
    return this.present.init.req;
  }

  get transport(): CmTransport {
    return this.present.init.transport;
  }

  get waitsForConsumer(): boolean {
    return this.state === 'REQ_RCVD' || this.state === 'MRA_REQ_SENT';
  }

  /** Notes that the devices share memory. Call it before the consumer gets the request. */
  grantChannel(): void {
    if (!this.waitsForConsumer) return;
    this.handshake = new Handshake(this.present.init, this.services.guid);
  }

  /** @throws SpiError('EINVAL') if an earlier connection to the peer used the queue pair */
  checkUnknown({ qpn }: QueuePair): void {
    this.services.table.checkUnknown(qpn, this.remoteGid);
  }

  /** @throws SpiError of the provider if the queue pair cannot become ready to receive */
  accept(options: CmAcceptOptions): void {
    const qpControl = new QpControl(options.qp, this);
    const plan = this.planFor(options);
    this.present.plan = plan;
    try {
      qpControl.toRtr(plan);
    } catch (error) {
      qpControl.release();
      throw error;
    }
    this.qpControl = qpControl;
    this.onEvent = options.onEvent;
    this.present.rep = this.repFor(options, plan);
    this.services.table.addLingering(this);
    this.dispatch('accept');
  }

  /**
   * Lets the CM of another process accept the request, and passes on copies of the REQ.
   * @throws SpiError of that CM; the request is unchanged then
   */
  handOver(elsewhere: CmElsewhere, options: CmAcceptOptions): CmConnection {
    const { origin } = this.present.init;
    const message: CmMessage = { name: 'REQ', body: this.req };
    const request = { data: madOf(message, origin.transactionId), source: origin.source };
    elsewhere.accept(request, options);
    const { handed, clock } = this.services;
    handed.add(this.asker, () => elsewhere.repeat(request), clock.now(), REQ_ANSWERED_US);
    this.dispatch('handOver');
    return new HandedConnection(this.remoteGid, this.localPort);
  }

  reject(options: CmRejectOptions): void {
    const { reason, privateData, info } = options;
    this.present.rejection = {
      reason,
      privateData: privateData.slice(),
      ...(info && { info: info.slice() }),
    };
    this.dispatch('reject');
  }

  override receive(message: CmMessage, origin: Origin): void {
    const { handshake } = this;
    if (handshake && message.name === 'MRA' && message.body.messageMraed === this.messageToMra) {
      handshake.serviceTimeout = message.body.serviceTimeout;
    }
    if (handshake && message.name === 'REJ') {
      handshake.failure = `the peer rejected it (${message.body.reason})`;
    }
    super.receive(message, origin);
  }

  dispatch(input: CmInput): boolean {
    return PassiveConnection.RUNNER.dispatch(this, input);
  }

  override onActionsDone(): void {
    super.onActionsDone();
    this.settle();
  }

  override end(): void {
    super.end();
    this.settle();
  }

  override onUnreachable(detail: string): void {
    if (this.handshake) this.handshake.failure = detail;
    super.onUnreachable(detail);
  }

  private settle(): void {
    const { handshake } = this;
    if (!handshake) return;
    if (!handshake.settled && !this.waitsForConsumer) {
      handshake.settled = true;
      handshake.init.onSettled();
    }
    const open = ['REQ_RCVD', 'MRA_REQ_SENT', 'REP_SENT', 'MRA_REP_RCVD'].includes(this.state);
    if (handshake.halfOpen && !open) {
      handshake.halfOpen = false;
      handshake.init.onClosedOrOpen();
    }
  }

  private planFor(options: CmAcceptOptions): QpPlan {
    const { init, agreement } = this.present;
    const { req, deviceAttributes, startingPsn } = init;
    const { maxResponderResources, maxInitiatorDepth } = deviceAttributes;
    return {
      addressVector: { ...this.path, peer: agreement },
      pathMtuBytes: agreement.pathMtuBytes,
      accessFlags: options.accessFlags,
      destinationQpn: req.localQpn,
      receivePsn: startingPsn,
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
    const { init, guid } = this.present;
    const { deviceAttributes } = init;
    return {
      localCommId: this.localCommId,
      remoteCommId: this.remoteCommId,
      ...answererFields(this.transport, options.qp),
      localQkey: 0,
      vendorId: 0,
      startingPsn: plan.receivePsn,
      responderResources: plan.responderResources,
      initiatorDepth: plan.initiatorDepth,
      targetAckDelay: deviceAttributes.localAckDelay,
      failoverAccepted: 0,
      endToEndFlowControl: 0,
      rnrRetryCount: options.rnrRetryCount,
      localCaGuid: guid,
      privateData: options.privateData.slice(),
    };
  }

  /** RTR to RTS. If the queue pair has failed meanwhile, the connection ends. */
  private startQp(): void {
    const { present } = this;
    try {
      if (present.plan) this.qpControl?.toRts(present.plan);
    } catch (error) {
      present.failure = `the queue pair cannot send: ${String(error)}`;
      this.dispatch('qpFailed');
      return;
    }
    this.dispatch('qpReady');
  }

  /** @param waitUs how long our MRA asked the peer to wait before it repeats its REQ */
  private sendRejection(localCommId: number, waitUs = 0): void {
    const { remoteCommId, services } = this;
    const { rejection } = this.present;
    const messageRejected = MESSAGE_REJECTED.req;
    const body = rejOf({ localCommId, remoteCommId, messageRejected, ...rejection });
    services.rejected.add(this.asker, body, services.clock.now(), REQ_ANSWERED_US + waitUs);
    this.send({ name: 'REJ', body });
  }

  private get asker(): Asker {
    const { remoteCommId: commId, remoteGuid: guid, remoteGid: gid, transactionId } = this;
    return { commId, guid, gid, transactionId };
  }

  private get present(): Handshake {
    if (!this.handshake) throw new SpiError('EIO', 'the handshake is over');
    return this.handshake;
  }

  private giveUpDetail(): string {
    return this.present.failure ?? `no answer to ${this.attempts} replies`;
  }

  private static readonly ACTIONS: Actions<PassiveConnection, CmAction> = {
    ...Connection.COMMON,
    sendMraReq: (c) => {
      const mra = { messageMraed: MESSAGE_MRAED.req, serviceTimeout: MRA_SERVICE_TIMEOUT };
      c.send({ name: 'MRA', body: { ...c.ids, ...mra, privateData: NO_DATA } });
    },
    sendRep: (c) => {
      const { rep } = c.present;
      if (!rep) throw new SpiError('EIO', 'REP_SENT without a REP');
      c.send({ name: 'REP', body: rep });
    },
    startRetries: (c) => {
      const { localCmResponseTimeout, maxCmRetries } = c.req;
      c.startRetries(repRetries(localCmResponseTimeout, maxCmRetries));
    },
    extendWait: (c) => c.extendWait(mraWaitUs(c.present.serviceTimeout, c.ackTimeout)),
    startQp: (c) => c.startQp(),
    rejectReq: (c) => c.sendRejection(0),
    rejectReqMra: (c) => {
      c.sendRejection(c.localCommId, mraWaitUs(MRA_SERVICE_TIMEOUT, c.ackTimeout));
    },
    reportEstablished: (c) => {
      c.emit({ type: 'established', privateData: NO_DATA });
      c.settle();
      c.forgetWait();
      c.handshake = undefined;
    },
    reportAcceptFailed: (c) => c.emitEnd({ type: 'accept-failed', detail: c.giveUpDetail() }),
  };

  private static readonly RUNNER = new TableRunner(PASSIVE_TABLE, PassiveConnection.ACTIONS);
}

/** The connection request as its listener gets it. */
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
