/**
 * What arrives: each message finds its connection, or what is due where there is none.
 * Nothing here throws for what a peer sends.
 */
import {
  CHANNEL_MTU_BYTES,
  type CmRequest,
  describeReport,
  type Device,
  type Gid,
  gidEquals,
  type HandedRequest,
  type MadAddress,
  type NetworkReport,
  SpiError,
} from '../../core/spi/index.js';
import { slotOfPeer } from '../../core/spi/internal/index.js';
import type { Admission } from './admission/admission.js';
import { aprOf } from './messages/apr.js';
import { agreementOf } from './messages/peer-agreement.js';
import type { CmCounters } from './common/cm-counters.js';
import type { Connection, ConnectionServices } from './connection/connection.js';
import type { Listener, Listeners } from './admission/listeners.js';
import type { Origin } from './common/origin.js';
import { PassiveConnection, type PassiveInit } from './connection/passive.js';
import { guidOfInfo, rejOf } from './messages/rej.js';
import { requestGone } from './common/answers.js';
import type { Asker } from './messages/answered-requests.js';
import {
  checkReq,
  isRejection,
  isTaken,
  type TakenContents,
  wrongTransportReason,
} from './messages/req-check.js';
import { requestOf } from './connection/request.js';
import { Places } from './admission/half-open-limit.js';
import type { Sidr } from './sidr/sidr.js';
import { REQ_ANSWERED_US } from './common/timing.js';
import { transactionIdOf } from './common/transaction-id.js';
import { AP_STATUS } from './wire/apr.js';
import { NO_DATA } from './wire/cm-codec.js';
import type { CmDreq } from './wire/dreq.js';
import type { CmLap } from './wire/lap.js';
import { type CmMessage, parseCmMad } from './wire/message.js';
import { type CmRej, MESSAGE_REJECTED } from './wire/rej.js';
import { REJECT_REASON } from './wire/reject-reason.js';
import type { CmRep } from './wire/rep.js';
import type { CmReq } from './wire/req.js';

export interface CmReceiverInit {
  readonly services: ConnectionServices;
  readonly device: Device;
  readonly listeners: Listeners;
  readonly counters: CmCounters;
  readonly admission: Admission;
  readonly sidr: Sidr;
  readonly maxHalfOpen: number;
  newCommId(): number;
  newPsn(): number;
}

export class CmReceiver {
  private readonly halfOpen: Places;

  constructor(private readonly init: CmReceiverInit) {
    this.halfOpen = new Places(init.maxHalfOpen, init.counters, init.services.clock);
  }

  receive(data: Uint8Array, source: MadAddress): void {
    const { counters } = this.init;
    if (!this.isAdmitted(data, source)) return;
    const mad = parseCmMad(data);
    if (!mad) {
      counters.malformed++;
      return;
    }
    counters.received++;
    const transactionId = transactionIdOf(mad.transactionIdHi, mad.transactionIdLo);
    this.route(mad.message, { source, transactionId });
  }

  /** Before anything is parsed: what a flood brings is to cost next to nothing. */
  private isAdmitted(data: Uint8Array, { gid }: MadAddress): boolean {
    const { counters, admission, services } = this.init;
    const verdict = admission.judge(data, gid, services.clock.now());
    if (verdict === 'repeated') counters.repeatsDropped++;
    else if (verdict === 'overRate') counters.overRate++;
    return verdict === 'taken';
  }

  /**
   * What network or system say of packets to a peer. Its MTU is no matter of ours, nor is memory
   * shared with it, by which no message of ours goes.
   */
  onReport(report: NetworkReport): void {
    const { type } = report;
    if (type === 'too-big' || type === 'too-long' || type === 'peer-gone') return;
    const what = describeReport(report);
    this.onHint(report.gid, what);
    this.init.sidr.onHint(report.gid, what);
  }

  /** A verdict holds for those too that wait for their turn to ask the same peer. */
  private onHint(gid: Gid, what: string): void {
    const all = this.init.services.table.all().filter((one) => gidEquals(one.remoteGid, gid));
    const queued = all.filter(({ state }) => state === 'REQ_QUEUED' || state === 'DREQ_QUEUED');
    const given = all.map((one) => ({ one, verdict: one.weighHint(what) }));
    const verdict = given.find((each) => each.verdict !== undefined)?.verdict;
    if (verdict === undefined) return;
    // They first: the end of another would give one of them its turn.
    for (const one of queued) one.onUnreachable(verdict);
    for (const each of given) if (each.verdict !== undefined) each.one.onUnreachable(each.verdict);
  }

  private route(message: CmMessage, origin: Origin): void {
    switch (message.name) {
      case 'REQ':
        this.onReq(message.body, message, origin);
        break;
      case 'SIDR_REQ':
        this.init.sidr.onReq(message.body, origin);
        break;
      case 'SIDR_REP':
        this.init.sidr.onRep(message.body, origin);
        break;
      case 'LAP':
        if (!this.deliver(this.find(message.body), message, origin)) {
          this.refuseLap(message.body, origin, AP_STATUS.INVALID_COMM_ID);
        }
        break;
      case 'REJ':
        this.deliver(this.findRejected(message.body, origin), message, origin);
        break;
      case 'REP':
        if (!this.deliver(this.find(message.body), message, origin)) {
          this.refuseRep(message.body, origin);
        }
        break;
      case 'DREQ':
        if (!this.deliver(this.find(message.body), message, origin)) {
          this.answerDreq(message.body, origin);
        }
        break;
      default:
        this.deliver(this.find(message.body), message, origin);
    }
  }

  /** By both ids; the peer's is new to us in the answer to a REQ. */
  private find(ids: { localCommId: number; remoteCommId: number }): Connection | undefined {
    const connection = this.init.services.table.find(ids.remoteCommId);
    if (!connection) return undefined;
    const known = connection.remoteCommId;
    return known === 0 || known === ids.localCommId ? connection : undefined;
  }

  private findRejected(rej: CmRej, { source }: Origin): Connection | undefined {
    const { table } = this.init.services;
    if (rej.reason === REJECT_REASON.TIMEOUT) {
      const guid = guidOfInfo(rej);
      if (guid !== undefined) return table.findRemote(rej.localCommId, guid, source.gid);
    }
    if (rej.messageRejected !== MESSAGE_REJECTED.req) return this.find(rej);
    // Answered by a REP, the REQ is not rejected any more: this one answers an earlier copy.
    const asker = table.find(rej.remoteCommId);
    return asker?.remoteCommId === 0 ? asker : undefined;
  }

  /** False if there is no connection; what comes from a third party is dropped. */
  private deliver(connection: Connection | undefined, message: CmMessage, origin: Origin): boolean {
    const { counters } = this.init;
    if (!connection) {
      counters.unknownConnection++;
      return false;
    }
    if (!gidEquals(connection.remoteGid, origin.source.gid)) {
      counters.wrongSource++;
      return true;
    }
    const { sourcePort } = connection;
    if (sourcePort !== 0 && origin.source.udpPort !== sourcePort) {
      counters.wrongPort++;
      return true;
    }
    if (message.name === 'DREQ' && message.body.remoteQpn !== connection.localQpn) {
      counters.unexpected++;
      return true;
    }
    if (message.name === 'LAP' && message.body.remoteQpn !== connection.localQpn) {
      this.refuseLap(message.body, origin, AP_STATUS.INVALID_QPN);
      return true;
    }
    const before = connection.state;
    connection.receive(message, origin);
    if (connection.state !== before) this.payBack(connection, origin);
    return true;
  }

  /** A message that moves a connection costs nothing, nor does the REQ of an established one. */
  private payBack(connection: Connection, { source }: Origin): void {
    const { admission, services } = this.init;
    const isAccepted = connection.role === 'passive' && connection.state === 'ESTABLISHED';
    admission.payBack(source.gid, isAccepted ? 2 : 1, services.clock.now());
  }

  private onReq(req: CmReq, message: CmMessage, origin: Origin): void {
    const { services, device, listeners } = this.init;
    const repeated = services.table.findRemote(req.localCommId, req.localCaGuid, origin.source.gid);
    if (repeated) {
      this.deliver(repeated, message, origin);
      return;
    }
    if (this.repeatRejection(req, origin) || this.repeatHandOver(req, origin)) return;
    const checked = checkReq(req, origin.source.gid, device);
    if (isRejection(checked)) {
      this.rejectReq(req, origin, checked.reason, checked.info);
      return;
    }
    if (this.isStale(req, origin)) {
      this.rejectReq(req, origin, REJECT_REASON.STALE_CONNECTION);
      return;
    }
    const listener = listeners.find(req.serviceId);
    if (!listener) {
      this.rejectReq(req, origin, REJECT_REASON.INVALID_SERVICE_ID);
      return;
    }
    const { onRequest, transport = 'rc' } = listener.options;
    if (!onRequest || !isTaken(checked, transport)) {
      this.rejectReq(req, origin, wrongTransportReason(req));
    } else if (this.halfOpen.takeFor(listener, origin.source.gid)) {
      this.handOut(req, checked, listener, origin);
    }
  }

  /** The peer's queue pair is in a connection of ours: that one is a ghost, and is told so. */
  private isStale(req: CmReq, { source }: Origin): boolean {
    const { services, counters } = this.init;
    const ghost = services.table.findRemoteQp(req.localQpn, req.localCaGuid, source.gid);
    if (!ghost) return false;
    counters.staleConnections++;
    ghost.dispatch('stale');
    return true;
  }

  private handOut(req: CmReq, contents: TakenContents, listener: Listener, origin: Origin): void {
    const { services } = this.init;
    const { gid } = origin.source;
    const connection = this.newPassive(req, contents, origin, {
      onSettled: () => listener.backlog.giveBack(gid),
      onClosedOrOpen: () => this.halfOpen.giveBack(gid),
    });
    const request = requestOf(connection, contents);
    this.meet(req, origin, (met) => {
      if (met) connection.grantChannel();
      services.defer(() => {
        if (connection.waitsForConsumer) listener.options.onRequest?.(request);
      });
    });
  }

  private newPassive(
    req: CmReq,
    { transport, localGidIndex }: TakenContents,
    origin: Origin,
    places: Pick<PassiveInit, 'onSettled' | 'onClosedOrOpen'>,
  ): PassiveConnection {
    const { services, device } = this.init;
    return new PassiveConnection(services, {
      req,
      transport,
      origin,
      localCommId: this.init.newCommId(),
      path: services.table.pathTo(origin.source.gid, localGidIndex),
      deviceAttributes: device.attributes,
      startingPsn: this.init.newPsn(),
      ...places,
    });
  }

  /**
   * A request that another process hands over, to be accepted at once. It has been counted and
   * given a place there.
   * @throws SpiError('EINVAL') no REQ; ('ENOTCONN') it is refused, or answered already
   */
  takeHanded(request: HandedRequest): CmRequest {
    const { services, device } = this.init;
    const { req, origin } = reqOfHanded(request);
    const { gid } = origin.source;
    if (services.table.findRemote(req.localCommId, req.localCaGuid, gid)) {
      throw requestGone('connection');
    }
    const checked = checkReq(req, gid, device);
    if (isRejection(checked)) {
      this.rejectReq(req, origin, checked.reason, checked.info);
      throw requestGone('connection', `refused for reason ${checked.reason}`);
    }
    if (this.isStale(req, origin)) {
      this.rejectReq(req, origin, REJECT_REASON.STALE_CONNECTION);
      throw requestGone('connection', 'the peer uses its queue pair in another one');
    }
    if (!isTaken(checked)) {
      this.rejectReq(req, origin, wrongTransportReason(req));
      throw requestGone('connection', 'no queue pair of this device is of its transport');
    }
    const nothing = (): void => undefined;
    const places = { onSettled: nothing, onClosedOrOpen: nothing };
    const connection = this.newPassive(req, checked, origin, places);
    const answered = requestOf(connection, checked);
    return {
      ...answered,
      accept: (options) => {
        try {
          return answered.accept(options);
        } catch (error) {
          // The process that has handed it over answers, or tries again.
          connection.end();
          throw error;
        }
      },
    };
  }

  /** A copy for a connection that is no more has no answer. */
  repeatHanded(request: HandedRequest): void {
    const { req, message, origin } = reqOfHanded(request);
    const { table } = this.init.services;
    const { gid } = origin.source;
    const connection = table.findRemote(req.localCommId, req.localCaGuid, gid);
    if (connection) this.deliver(connection, message, origin);
  }

  /** Devices of one host meet before the consumer is asked, so that REP can say that they have. */
  private meet(req: CmReq, { source }: Origin, done: (met: boolean) => void): void {
    const { device, services } = this.init;
    const { gid, udpPort } = source;
    const guid = req.localCaGuid;
    const { pathMtuBytes } = agreementOf({ req, source }, guid, services.guid);
    const isDue = pathMtuBytes === CHANNEL_MTU_BYTES && udpPort !== undefined;
    const slot = slotOfPeer(guid, req.localQpn);
    const peer = { guid, gid, ...(slot !== undefined && { slot }) };
    if (isDue && device.meet) device.meet({ ...peer, udpPort }, done);
    else done(false);
  }

  private rejectReq(req: CmReq, origin: Origin, reason: number, info?: Uint8Array): void {
    const { services, counters } = this.init;
    counters.requestsRejected++;
    const ids = { localCommId: 0, remoteCommId: req.localCommId };
    const rej = rejOf({ ...ids, messageRejected: MESSAGE_REJECTED.req, reason, info });
    services.rejected.add(askerOf(req, origin), rej, services.clock.now(), REQ_ANSWERED_US);
    this.sendRej(rej, origin);
  }

  /** A copy of a REQ that has been rejected: the REJ is on its way, or was lost. */
  private repeatRejection(req: CmReq, origin: Origin): boolean {
    const { services, counters } = this.init;
    const rej = services.rejected.find(askerOf(req, origin), services.clock.now());
    if (!rej) return false;
    counters.rejectionsRepeated++;
    this.sendRej(rej, origin);
    return true;
  }

  /** A copy of a REQ that another process answers. */
  private repeatHandOver(req: CmReq, origin: Origin): boolean {
    const { services } = this.init;
    const repeat = services.handed.find(askerOf(req, origin), services.clock.now());
    repeat?.();
    return repeat !== undefined;
  }

  /** A REP for no connection: its sender would repeat it until its retries are spent. */
  private refuseRep(rep: CmRep, origin: Origin): void {
    const ids = { localCommId: rep.remoteCommId, remoteCommId: rep.localCommId };
    const reason = REJECT_REASON.INVALID_COMMUNICATION_ID;
    this.sendRej(rejOf({ ...ids, messageRejected: MESSAGE_REJECTED.rep, reason }), origin);
  }

  private sendRej(body: CmRej, { source, transactionId }: Origin): void {
    this.init.services.send({ name: 'REJ', body }, transactionId, source);
  }

  /** There are no alternate paths on RoCE: a peer that asks is told so at once. */
  private refuseLap(lap: CmLap, { source, transactionId }: Origin, apStatus: number): void {
    const ids = { localCommId: lap.remoteCommId, remoteCommId: lap.localCommId };
    const body = aprOf({ ...ids, apStatus });
    this.init.services.send({ name: 'APR', body }, transactionId, source);
  }

  /** The peer that asks is done: DREP, with the ids of the request crossed. */
  private answerDreq(dreq: CmDreq, { source, transactionId }: Origin): void {
    const body = {
      localCommId: dreq.remoteCommId,
      remoteCommId: dreq.localCommId,
      privateData: NO_DATA,
    };
    this.init.services.send({ name: 'DREP', body }, transactionId, source);
  }
}

/** @throws SpiError('EINVAL') what was handed over is no REQ */
function reqOfHanded({ data, source }: HandedRequest): {
  readonly req: CmReq;
  readonly message: CmMessage;
  readonly origin: Origin;
} {
  const mad = parseCmMad(data);
  if (mad?.message.name !== 'REQ') {
    throw new SpiError('EINVAL', `${data.length} bytes that are no REQ of 256 bytes`);
  }
  const transactionId = transactionIdOf(mad.transactionIdHi, mad.transactionIdLo);
  return { req: mad.message.body, message: mad.message, origin: { source, transactionId } };
}

function askerOf(req: CmReq, { source, transactionId }: Origin): Asker {
  return { commId: req.localCommId, guid: req.localCaGuid, gid: source.gid, transactionId };
}
