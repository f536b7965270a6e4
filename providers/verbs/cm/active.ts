/** The active side: address, route, REQ; by REP, queue pair to RTR and RTS, and RTU. */
import {
  type CmConnectOptions,
  type CmEvent,
  CmPrivateData,
  DEFAULT_PKEY,
  type Gid,
  PATH_MTU_BYTES,
  QpType,
  SpiError,
  Timer,
} from '../../../core/spi/index.js';
import {
  type Actions,
  checkConnectable,
  checkConnectOptions,
  checkPrivateData,
  NO_DATA,
  QpControl,
  REJECT_REASON,
  startWithin,
  TableRunner,
  timeUsOfCode,
} from '../../../plugins/cm/provider.js';
import { CM_OPTION, CmEventType } from '../addon/rdmacm.js';
import { peerText, serviceOf } from './address.js';
import type { CmNativeEvent } from './channel.js';
import { type CmServices, VerbsConnection } from './connection.js';
import { checkDevice, idTowards } from './identifier.js';
import { qpPlanOf } from './qp-plan.js';
import { ACTIVE_TABLE, type CmAction, type CmInput } from './states.js';

/**
 * A path of our own for RDMA_OPTION_IB_PATH (struct ibv_path_data, big-endian): rdma_cm takes the
 * path MTU of a connection from nowhere else. The kernel adds what belongs to Ethernet itself.
 */
const LENGTH = 72;
/** General management path, primary, both directions. */
const FLAGS = 0b101011;
const EXACTLY = 2 << 6;
const REVERSIBLE = 0x80;
const HOP_LIMIT = 64;
/** 2.5 Gbit/s: limits nothing on Ethernet, where the port's rate counts. */
const RATE = 2;

interface PathChoice {
  readonly localGid: Gid;
  readonly remoteGid: Gid;
  readonly pathMtuBytes: number;
  /** Exponent of 4.096 us * 2^n: there and back, so a packet lives for half of it. */
  readonly ackTimeout: number;
}

function pathDataOf(choice: PathChoice): Uint8Array {
  const { localGid, remoteGid, pathMtuBytes, ackTimeout } = choice;
  const bytes = new Uint8Array(LENGTH);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, FLAGS, true);
  bytes.set(remoteGid, 16);
  bytes.set(localGid, 32);
  view.setUint32(52, HOP_LIMIT);
  bytes[57] = REVERSIBLE | 1;
  view.setUint16(58, DEFAULT_PKEY);
  bytes[62] = EXACTLY | PATH_MTU_BYTES.indexOf(pathMtuBytes);
  bytes[63] = EXACTLY | RATE;
  bytes[64] = EXACTLY | Math.max(ackTimeout - 1, 0);
  return bytes;
}

/** SPI's default; rdma_cm's own is 19. */
const DEFAULT_ACK_TIMEOUT = 18;

export class ActiveConnection extends VerbsConnection {
  protected readonly onEvent: (event: CmEvent) => void;
  /** Chosen by rdma_cm: not known before the peer has answered. */
  localPort = 0;
  private readonly deadline = new Timer(() => void this.dispatch('deadline'));
  private answer: CmNativeEvent | undefined;

  private constructor(
    services: CmServices,
    id: number,
    private readonly options: CmConnectOptions,
  ) {
    super(services, 'IDLE', id, options.remoteGid.slice());
    this.onEvent = options.onEvent;
    this.qpControl = new QpControl(options.qp, this);
    this.dispatch('connect');
  }

  /** @throws SpiError as CmModule.connect; also what rdma_cm refuses at once */
  static begin(services: CmServices, given: CmConnectOptions): ActiveConnection {
    checkConnectOptions(given);
    // Before the private data: more of it would fit to what librdmacm cannot ask for.
    serviceOf(given.serviceId);
    checkPrivateData('REQ', given.privateData, CmPrivateData.REQ);
    checkTransport(given);
    checkConnectable(given.qp);
    const options = { ...given, privateData: given.privateData.slice() };
    const setTimeout = (id: number): void => setAckTimeout(services, id, options.ackTimeout);
    const { id, way } = idTowards(services, options, setTimeout);
    const connection = new ActiveConnection(services, id, options);
    connection.note(`asks ${way}`);
    return connection;
  }

  override onNativeEvent(event: CmNativeEvent): void {
    if (event.type === CmEventType.CONNECT_RESPONSE || event.type === CmEventType.REJECTED) {
      this.answer = event;
    } else if (event.type === CmEventType.ESTABLISHED) {
      this.answer ??= event;
    }
    super.onNativeEvent(event);
  }

  protected override stopTimers(): void {
    super.stopTimers();
    this.services.timers.stop(this.deadline);
  }

  private resolveRoute(): void {
    const { calls, device, resolveTimeoutMs } = this.services;
    const { pathMtuBytes } = this.options;
    checkDevice(this.services, this.id);
    // Only by setting the path itself can less than the port's MTU be asked for.
    if (pathMtuBytes === undefined || pathMtuBytes >= device.attributes.activeMtuBytes) {
      calls.resolveRoute(this.id, resolveTimeoutMs);
      return;
    }
    const path = pathDataOf({
      localGid: calls.describe(this.id).localGid,
      remoteGid: this.remoteGid,
      pathMtuBytes,
      ackTimeout: this.options.ackTimeout ?? DEFAULT_ACK_TIMEOUT,
    });
    calls.setOption(this.id, CM_OPTION.LEVEL_IB, CM_OPTION.IB_PATH, path);
  }

  private raiseQp(): void {
    const { calls } = this.services;
    const wanted = { ...this.options, ...this.parametersOf(this.options.qp, this.options) };
    this.moveQp('the queue pair cannot be connected', () => {
      const { localGid, localPort } = calls.describe(this.id);
      this.localPort = localPort;
      const plan = qpPlanOf(this.services, this.id, localGid, wanted);
      this.timewaitUs = timeUsOfCode(plan.ackTimeout);
      this.qpControl?.toRtr(plan);
      this.qpControl?.toRts(plan);
      calls.establish(this.id);
    });
  }

  private sendReq(): void {
    const { qp, privateData } = this.options;
    this.services.calls.connect(this.id, this.parametersOf(qp, this.options), privateData);
  }

  private reportRejected(): void {
    const { status: reason = 0, privateData = NO_DATA } = this.answer ?? {};
    const consumer = reason === REJECT_REASON.CONSUMER_REJECT;
    this.emitEnd({ type: 'rejected', reason, consumer, privateData });
  }

  protected override dispatch(input: CmInput): boolean {
    return ActiveConnection.RUNNER.dispatch(this, input);
  }

  private static readonly ACTIONS: Actions<ActiveConnection, CmAction> = {
    ...VerbsConnection.COMMON,
    startDeadline: (c) => startWithin(c.services, c.deadline, c.options.timeoutUs),
    resolveRoute: (c) => c.attempt(() => c.resolveRoute()),
    sendReq: (c) => c.attempt(() => c.sendReq()),
    raiseQp: (c) => c.raiseQp(),
    reportEstablished: (c) => {
      c.emit({ type: 'established', privateData: c.answer?.privateData ?? NO_DATA });
    },
    reportRejected: (c) => c.reportRejected(),
    reportUnreachable: (c) => {
      const why = c.failure ?? 'no answer';
      const detail = `${peerText(c.remoteGid)} from ${c.services.device.name}: ${why}`;
      c.emitEnd({ type: 'unreachable', detail });
    },
    reportTimedOut: (c) => c.emitEnd({ type: 'timed-out' }),
  };

  private static readonly RUNNER = new TableRunner(ACTIVE_TABLE, ActiveConnection.ACTIONS);
}

function checkTransport({ qp }: CmConnectOptions): void {
  if (qp.type === QpType.RC) return;
  throw new SpiError(
    'EOPNOTSUPP',
    `queue pair ${qp.qpn}: identifiers of librdmacm connect RC queue pairs only`,
  );
}

/** Kernels that do not know the option keep theirs: no other was asked for. */
function setAckTimeout({ calls }: CmServices, id: number, ackTimeout: number | undefined): void {
  const value = Uint8Array.of(ackTimeout ?? DEFAULT_ACK_TIMEOUT);
  try {
    calls.setOption(id, CM_OPTION.LEVEL_ID, CM_OPTION.ID_ACK_TIMEOUT, value);
  } catch (error) {
    if (ackTimeout !== undefined) throw error;
  }
}
