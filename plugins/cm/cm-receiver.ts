/**
 * Receives CM messages: passes each to its connection, or answers those that have none.
 * No input from a peer makes it throw.
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
import { AP_STATUS, aprOf, type CmLap } from './wire/lap.js';
import { agreementOf } from './messages/peer-agreement.js';
import type { CmCounters } from './common/cm-counters.js';
import type { Connection, ConnectionServices } from './connection/connection.js';
import type { Listener, Listeners } from './admission/listeners.js';
import { type Origin, transactionIdOf } from './common/transaction-id.js';
import { PassiveConnection, type PassiveInit, requestOf } from './connection/passive.js';
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
import { HalfOpenLimit } from './admission/half-open-limit.js';
import type { Sidr } from './sidr/sidr.js';
import { REQ_ANSWERED_US } from './common/timing.js';
import { NO_DATA } from './wire/cm-codec.js';
import type { CmDreq } from './wire/dreq.js';
import { type CmMessage, parseCmMad } from './wire/message.js';
import { type CmRej, MESSAGE_REJECTED, REJECT_REASON } from './wire/rej.js';
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
  private readonly halfOpen: HalfOpenLimit;

  constructor(private readonly init: CmReceiverInit) {
    this.halfOpen = new HalfOpenLimit(init.maxHalfOpen, init.counters, init.services.clock);
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

  /** Runs before any parsing, so that a flood costs little. */
  private isAdmitted(data: Uint8Array, { gid }: MadAddress): boolean {
    const { counters, admission, services } = this.init;
    const verdict = admission.judge(data, gid, services.clock.now());
    if (verdict === 'repeated') counters.repeatsDropped++;
    else if (verdict === 'overRate') counters.overRate++;
    return verdict === 'taken';
  }

  /**
   * Takes an ICMP or system error about packets to a peer. Errors about MTU or shared memory are
   * ignored: no CM message depends on either.
   */
  onReport(report: NetworkReport): void {
    const { type } = report;
    if (type === 'too-big' || type === 'too-long' || type === 'peer-gone') return;
    const what = describeReport(report);
    this.onHint(report.gid, what);
    this.init.sidr.onHint(report.gid, what);
  }

  /** If the peer is unreachable, connections that wait to send it a request fail, too. */
  private onHint(gid: Gid, what: string): void {
    const all = this.init.services.table.all().filter((one) => gidEquals(one.remoteGid, gid));
    const queued = all.filter(({ state }) => state === 'REQ_QUEUED' || state === 'DREQ_QUEUED');
    const given = all.map((one) => ({ one, verdict: one.weighHint(what) }));
    const verdict = given.find((each) => each.verdict !== undefined)?.verdict;
    if (verdict === undefined) return;
    // Queued ones first: when another ends, a queued one would send its request.
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

  /** Finds a connection by both ids. The peer's id is unknown until it answers our REQ. */
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
    // After our REP the REQ cannot be rejected any more: this answers an earlier copy.
    const asker = table.find(rej.remoteCommId);
    return asker?.remoteCommId === 0 ? asker : undefined;
  }

  /** False if there is no connection. Drops a message from an address other than the peer's. */
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

  /** Refunds a message that advances a connection, and the REQ when it is established. */
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

  /** True if the peer's queue pair is in another connection of ours, which then ends as stale. */
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
   * Takes a request from another process, to be accepted at once. That process has already counted
   * it and reserved its place.
   * @throws SpiError('EINVAL') if it is no REQ; ('ENOTCONN') if it is refused or answered already
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
      throw requestGone('connection', 'the peer uses its queue pair in another connection');
    }
    if (!isTaken(checked)) {
      this.rejectReq(req, origin, wrongTransportReason(req));
      throw requestGone('connection', 'this device has no queue pair of its transport');
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
          // The process that handed it over answers it, or tries again.
          connection.end();
          throw error;
        }
      },
    };
  }

  /** A repeated REQ gets no answer if its connection has ended. */
  repeatHanded(request: HandedRequest): void {
    const { req, message, origin } = reqOfHanded(request);
    const { table } = this.init.services;
    const { gid } = origin.source;
    const connection = table.findRemote(req.localCommId, req.localCaGuid, gid);
    if (connection) this.deliver(connection, message, origin);
  }

  /** Sets up shared memory with a device of this host before the consumer is asked: REP says so. */
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

  /** Answers a copy of a REQ that was rejected: its REJ is in flight, or was lost. */
  private repeatRejection(req: CmReq, origin: Origin): boolean {
    const { services, counters } = this.init;
    const rej = services.rejected.find(askerOf(req, origin), services.clock.now());
    if (!rej) return false;
    counters.rejectionsRepeated++;
    this.sendRej(rej, origin);
    return true;
  }

  /** Passes on a copy of a REQ that another process answers. */
  private repeatHandOver(req: CmReq, origin: Origin): boolean {
    const { services } = this.init;
    const repeat = services.handed.find(askerOf(req, origin), services.clock.now());
    repeat?.();
    return repeat !== undefined;
  }

  /** Rejects a REP without a connection; its sender would use up its retries otherwise. */
  private refuseRep(rep: CmRep, origin: Origin): void {
    const ids = { localCommId: rep.remoteCommId, remoteCommId: rep.localCommId };
    const reason = REJECT_REASON.INVALID_COMMUNICATION_ID;
    this.sendRej(rejOf({ ...ids, messageRejected: MESSAGE_REJECTED.rep, reason }), origin);
  }

  private sendRej(body: CmRej, { source, transactionId }: Origin): void {
    this.init.services.send({ name: 'REJ', body }, transactionId, source);
  }

  /** Refuses a LAP at once: RoCE has no alternate paths. */
  private refuseLap(lap: CmLap, { source, transactionId }: Origin, apStatus: number): void {
    const ids = { localCommId: lap.remoteCommId, remoteCommId: lap.localCommId };
    const body = aprOf({ ...ids, apStatus });
    this.init.services.send({ name: 'APR', body }, transactionId, source);
  }

  /** Answers a DREQ without a connection by a DREP, with the ids of the request swapped. */
  private answerDreq(dreq: CmDreq, { source, transactionId }: Origin): void {
    const body = {
      localCommId: dreq.remoteCommId,
      remoteCommId: dreq.localCommId,
      privateData: NO_DATA,
    };
    this.init.services.send({ name: 'DREP', body }, transactionId, source);
  }
}

/** @throws SpiError('EINVAL') if the data is no REQ */
function reqOfHanded({ data, source }: HandedRequest): {
  readonly req: CmReq;
  readonly message: CmMessage;
  readonly origin: Origin;
} {
  const mad = parseCmMad(data);
  if (mad?.message.name !== 'REQ') {
    throw new SpiError('EINVAL', `the ${data.length} bytes are no REQ, which has 256`);
  }
  const transactionId = transactionIdOf(mad.transactionIdHi, mad.transactionIdLo);
  return { req: mad.message.body, message: mad.message, origin: { source, transactionId } };
}

function askerOf(req: CmReq, { source, transactionId }: Origin): Asker {
  return { commId: req.localCommId, guid: req.localCaGuid, gid: source.gid, transactionId };
}
