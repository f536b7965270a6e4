/**
 * The CM module: connections over the MAD module of one device (IBTA 12, rdma_cm's conventions).
 * Calls of the consumer are here; messages of peers are in cm-receiver.ts.
 */
import { assert, checkOptions, FUNCTION, integer, optional } from '../../core/spi/checks/index.js';
import { einval } from '../../core/spi/errors/einval.js';
import {
  CLOCK,
  type Clock,
  type CmAcceptOptions,
  type CmConnection,
  type CmConnectOptions,
  type CmListener,
  type CmListenOptions,
  type CmModule,
  type CmResolution,
  type CmResolveOptions,
  type ConnectionRecord,
  DEVICE,
  type Device,
  type Gid,
  GSI_QKEY,
  GSI_QPN,
  type HandedRequest,
  inject,
  inSlot,
  isIpv4Gid,
  isPortServiceId,
  LOGGER,
  type Logger,
  MAD,
  type MadAgent,
  type MadModule,
  OPTIONS,
  plugin,
  RANDOM,
  type Random,
  SCHEDULER,
  type Scheduler,
  SpiError,
  Timer,
  TIMERS,
  type Timers,
  WcStatus,
} from '../../core/spi/index.js';
import { FlightLog } from '../../core/spi/internal/index.js';
import { ActiveConnection } from './connection/active.js';
import { Admission, type AdmissionLimits } from './admission/admission.js';
import { checkConnectOptions, checkPeer } from './common/checks.js';
import { CmReceiver } from './cm-receiver.js';
import { deferring } from './common/consumer.js';
import { type CmCounters, newCmCounters } from './common/cm-counters.js';
import type { CmInput } from './connection/states.js';
import { ConnectionTable } from './connection/table.js';
import {
  type CmPath,
  type Connection,
  type ConnectionServices,
  NO_EXIT_MESSAGE,
} from './connection/connection.js';
import { type CmStateChange, FlightNotes } from './connection/flight-notes.js';
import { Listeners } from './admission/listeners.js';
import { AnsweredRequests } from './messages/answered-requests.js';
import { reqOf } from './messages/req.js';
import { Sidr } from './sidr/sidr.js';
import { MAX_ANSWERED, REQUESTS_PER_PEER } from './common/timing.js';
import { madOf, type TransactionId, transactionIdOf } from './common/transaction-id.js';
import { checkConnectable, transportOfAsker } from './common/transport.js';
import { RequestLimiter } from './connection/request-limiter.js';
import { CM_CLASS, CM_CLASS_VERSION, CM_METHOD_SEND, NO_DATA } from './wire/cm-codec.js';
import type { CmMessage } from './wire/message.js';

export interface CmDependencies {
  readonly mad: MadModule;
  readonly device: Device;
  readonly timers: Timers;
  readonly clock: Clock;
  readonly random: Random;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
}

export interface CmOptions {
  /**
   * The most connections between REQ and RTU, and the most service id resolutions that wait for
   * their listeners; further requests are dropped. An address may have as many as are left, so one
   * alone gets half (plugins/cm/admission/shares.ts). 2 to 65,536, default 1024.
   */
  readonly maxHalfOpen?: number;
  /**
   * The most messages a second, and at once, that are read although they advance no connection;
   * the rest is dropped unread (admission/admission.ts). 1 to 1,000,000 and 2 to 1,000,000, default
   * 4,000 and 8,000. At its own limit below, an address that sends 5,000 a second costs at most a
   * third of a core (`npm run bench:flood`).
   */
  readonly requestsPerSecond?: number;
  readonly requestBurst?: number;
  /** The same for one address, with the same ranges; default 1,000 and 2,000. */
  readonly peerRequestsPerSecond?: number;
  readonly peerRequestBurst?: number;
  /**
   * Told of each input that a connection takes (docs/cm-states.md). Called inside of calls to the
   * CM: it must not call back.
   */
  readonly onState?: (change: CmStateChange) => void;
}

const MAX_HALF_OPEN = 65_536;
const MAX_RATE = 1_000_000;
const RATE = optional(integer(1, MAX_RATE));
/** At least 2, since quiet addresses are limited to half of it. */
const BURST = optional(integer(2, MAX_RATE));

/** The allowed values of each option. */
export const CM_OPTIONS = {
  maxHalfOpen: optional(integer(2, MAX_HALF_OPEN)),
  requestsPerSecond: RATE,
  requestBurst: BURST,
  peerRequestsPerSecond: RATE,
  peerRequestBurst: BURST,
  onState: optional(FUNCTION),
};

/** How long `close` waits for its last messages to be sent, and again for its agent to end. */
const CLOSE_STEP_US = 500_000;

@plugin({ name: 'cm', kind: 'cm', sdkVersion: '2.0', options: CM_OPTIONS })
export class Cm implements CmModule {
  readonly counters: CmCounters = newCmCounters();
  private readonly agent: MadAgent;
  private readonly table = new ConnectionTable();
  private readonly limiter = new RequestLimiter(REQUESTS_PER_PEER);
  private readonly listeners: Listeners;
  private readonly services: ConnectionServices;
  private readonly sidr: Sidr;
  private readonly receiver: CmReceiver;
  private nextTransaction: number;
  /** Messages whose send the MAD module has not completed. */
  private unsent = 0;
  private onAllSent: () => void = () => undefined;
  private closed: Promise<void> | undefined;

  /** @throws SpiError('EINVAL') for a bad option, or if the MAD module has a CM already */
  constructor(
    @inject({
      mad: MAD,
      device: DEVICE,
      timers: TIMERS,
      clock: CLOCK,
      random: RANDOM,
      scheduler: SCHEDULER,
      logger: LOGGER,
    })
    private readonly dependencies: CmDependencies,
    @inject(OPTIONS) options: CmOptions = {},
  ) {
    checkOptions(options, CM_OPTIONS, einval);
    const { mad, device, clock, timers, random } = dependencies;
    this.nextTransaction = random.u32();
    this.listeners = new Listeners(device.share);
    this.services = {
      clock,
      timers,
      notes: new FlightNotes(new FlightLog(), () => clock.now(), options.onState),
      table: this.table,
      limiter: this.limiter,
      rejected: new AnsweredRequests(MAX_ANSWERED),
      handed: new AnsweredRequests(MAX_ANSWERED),
      guid: device.attributes.nodeGuid,
      newTransactionId: () => this.newTransactionId(),
      send: (message, transactionId, path) => this.send(message, transactionId, path),
      exitMessages: device.keepExitMad && {
        keep: (message, path) => this.keepExitMessage(message, path),
        drop: (exitMessage) => device.dropExitMad?.(exitMessage),
      },
      share: device.share,
      defer: deferring(dependencies, () => this.closed !== undefined),
      onUnexpected: (connection, input) => this.onUnexpected(connection, input),
    };
    const { maxHalfOpen = 1_024 } = options;
    const shared = {
      services: this.services,
      device,
      listeners: this.listeners,
      counters: this.counters,
      admission: new Admission(admissionLimits(options), random.u32()),
    };
    this.sidr = new Sidr({ ...shared, limit: maxHalfOpen });
    this.receiver = new CmReceiver({
      ...shared,
      sidr: this.sidr,
      maxHalfOpen,
      newCommId: () => this.newCommId(),
      newPsn: () => this.newPsn(),
    });
    this.agent = mad.registerAgent({
      managementClass: CM_CLASS,
      classVersion: CM_CLASS_VERSION,
      methods: [CM_METHOD_SEND],
      onReceive: ({ data, source }) => this.receiver.receive(data, source),
      onSend: ({ status }) => {
        if (status !== WcStatus.SUCCESS) this.counters.sendErrors++;
        assert(this.unsent > 0, 'a message of the CM is sent once');
        this.unsent--;
        if (this.unsent === 0) this.onAllSent();
      },
    });
    device.setReportHandler((report) => this.receiver.onReport(report));
  }

  /** Connections that are not idle, timewait included. */
  get connectionCount(): number {
    return this.table.size;
  }

  /** True if no connection or resolution is left. */
  get isIdle(): boolean {
    return this.table.isEmpty && this.limiter.isIdle && this.sidr.isEmpty;
  }

  listen(options: CmListenOptions): CmListener {
    this.checkOpen();
    return this.listeners.add(options);
  }

  connect(options: CmConnectOptions): CmConnection {
    this.checkOpen();
    checkConnectOptions(options);
    transportOfAsker(options.qp);
    checkConnectable(options.qp);
    const { device, random } = this.dependencies;
    const { index: localGidIndex, gid: localGid } = this.localGidFor(options);
    this.table.checkUnknown(options.qp.qpn, options.remoteGid);
    const path = this.table.pathTo(options.remoteGid, localGidIndex);
    const identity = {
      localCommId: this.newCommId(),
      localGid,
      startingPsn: this.newPsn(),
      sourcePort: ephemeralPort(random.u32()),
    };
    const req = reqOf(options, identity, device.attributes);
    const localPort = isPortServiceId(options.serviceId) ? identity.sourcePort : 0;
    const connection = new ActiveConnection(this.services, path, options, req, localPort);
    connection.dispatch('connect');
    return connection;
  }

  /**
   * Asks for the queue pair of a datagram service (SIDR).
   * @throws SpiError('EINVAL') if the private data is too long; ('ENETUNREACH') if the device has
   * no address of that family
   */
  resolve(options: CmResolveOptions): CmResolution {
    this.checkOpen();
    checkPeer(options);
    const { random } = this.dependencies;
    const { index: localGidIndex, gid: localGid } = this.localGidFor(options);
    const sourcePort = ephemeralPort(random.u32());
    const identity = { requestId: this.newRequestId(), localGid, sourcePort };
    return this.sidr.resolve(options, identity, { gid: options.remoteGid.slice(), localGidIndex });
  }

  close(): Promise<void> {
    this.closed ??= this.shutDown();
    return this.closed;
  }

  sayGoodbye(mayGoOn: () => boolean): void {
    for (const connection of this.table.all()) {
      if (!mayGoOn()) return;
      connection.dispatch('close');
    }
  }

  /** @internal Awaits no DREP: that goes to the process that had the connection. */
  disconnectFor(record: ConnectionRecord): void {
    const { localCommId, remoteCommId, remoteQpn, peerGid: gid, localGidIndex } = record;
    const body = { localCommId, remoteCommId, remoteQpn, privateData: NO_DATA };
    this.send({ name: 'DREQ', body }, this.newTransactionId(), { gid, localGidIndex });
  }

  acceptHanded(request: HandedRequest, options: CmAcceptOptions): CmConnection {
    this.checkOpen();
    return this.receiver.takeHanded(request).accept(options);
  }

  repeatHanded(request: HandedRequest): void {
    if (!this.closed) this.receiver.repeatHanded(request);
  }

  private shutDown(): Promise<void> {
    this.listeners.clear();
    this.sidr.close();
    this.limiter.close();
    for (const connection of this.table.all()) connection.dispatch('close');
    for (const connection of this.table.all()) connection.end();
    return this.lastMessages();
  }

  /** Waits for unsent messages, since unregistering drops those that have not reached QP1. */
  private async lastMessages(): Promise<void> {
    if (this.unsent > 0) {
      await this.atMost(CLOSE_STEP_US, new Promise((resolve) => (this.onAllSent = resolve)));
    }
    await this.atMost(CLOSE_STEP_US, this.agent.unregister());
  }

  private atMost(limitUs: number, step: Promise<void>): Promise<void> {
    const { timers, clock } = this.dependencies;
    return new Promise((resolve, reject) => {
      const limit = new Timer(() => resolve());
      timers.start(limit, clock.now() + limitUs);
      step.finally(() => timers.stop(limit)).then(resolve, reject);
    });
  }

  private checkOpen(): void {
    if (this.closed) throw new SpiError('ENODEV', 'the CM module is closed');
  }

  /** @throws SpiError('ENETUNREACH') if the device has no address of the peer's family */
  private localGidFor(options: CmConnectOptions | CmResolveOptions): { index: number; gid: Gid } {
    const { gids } = this.dependencies.device;
    const isIpv4 = isIpv4Gid(options.remoteGid);
    const index = options.localGidIndex ?? gids.findIndex((gid) => isIpv4Gid(gid) === isIpv4);
    const gid = gids[index];
    if (gid && isIpv4Gid(gid) === isIpv4) return { index, gid };
    const family = isIpv4 ? 'IPv4' : 'IPv6';
    const hint = `open it with an ${family} address too`;
    throw new SpiError('ENETUNREACH', `the device has no ${family} address to connect from`, {
      hint,
    });
  }

  /** Stores a message to send if a signal ends the process. Best effort: a failure is logged. */
  private keepExitMessage(message: CmMessage, path: CmPath): number {
    const { device, logger } = this.dependencies;
    try {
      const mad = madOf(message, this.newTransactionId());
      return device.keepExitMad?.(mad, path) ?? NO_EXIT_MESSAGE;
    } catch (error) {
      logger.debug('no DREQ is kept for the end of the process', { error });
      return NO_EXIT_MESSAGE;
    }
  }

  private send(message: CmMessage, transactionId: TransactionId, path: CmPath): void {
    const data = madOf(message, transactionId);
    const destination = { ...path, qpn: GSI_QPN, qkey: GSI_QKEY };
    try {
      this.agent.send({ destination, data, timeoutUs: 0, retries: 0 });
      this.counters.sent++;
      this.unsent++;
    } catch (error) {
      this.counters.sendErrors++;
      this.dependencies.logger.debug(`${message.name} cannot be sent`, { error });
    }
  }

  private onUnexpected(connection: Connection, input: CmInput): void {
    this.counters.unexpected++;
    const { state, localCommId } = connection;
    this.dependencies.logger.debug(`CM: ${input} in state ${state}`, { localCommId });
  }

  private newTransactionId(): TransactionId {
    this.nextTransaction = (this.nextTransaction + 1) >>> 0;
    return transactionIdOf(this.agent.hiTid, this.nextTransaction);
  }

  private newCommId(): number {
    return this.newId((id) => id === 0 || this.table.hasLocalId(id));
  }

  private newRequestId(): number {
    return this.newId((id) => this.sidr.hasRequestId(id));
  }

  private newId(isTaken: (id: number) => boolean): number {
    const { device, random } = this.dependencies;
    for (;;) {
      const id = inSlot(device.share, random.u32());
      if (!isTaken(id)) return id;
    }
  }

  private newPsn(): number {
    return this.dependencies.random.u32() & 0xffffff;
  }
}

function admissionLimits(options: CmOptions): AdmissionLimits {
  const { requestsPerSecond = 4_000, requestBurst = 8_000 } = options;
  const { peerRequestsPerSecond = 1_000, peerRequestBurst = 2_000 } = options;
  return {
    ofPeer: { perSecond: peerRequestsPerSecond, burst: peerRequestBurst },
    inAll: { perSecond: requestsPerSecond, burst: requestBurst },
  };
}

/** A port of the range that Linux uses for unbound sockets. */
function ephemeralPort(random: number): number {
  return 32_768 + (random % 28_232);
}
