/**
 * The MAD module: agents over QP1 of one device (IBTA 13; ib_mad's agent model). Received MADs are
 * routed here: responses by transaction id, requests by class and method.
 */
import { checkOptions, integer, optional, record } from '../../core/spi/checks/index.js';
import { einval } from '../../core/spi/errors/einval.js';
import {
  CLOCK,
  type Clock,
  DEVICE,
  type Device,
  inject,
  inSlot,
  leaveUnhandled,
  LOGGER,
  type Logger,
  type MadAddress,
  type MadAgent,
  type MadAgentOptions,
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
} from '../../core/spi/index.js';
import {
  CLASS_PORT_INFO_ATTRIBUTE,
  emitMadHeader,
  isResponse,
  isRmppClass,
  isVendorRange2,
  MadClass,
  type MadHeader,
  MadMethod,
  MadStatus,
  parseMadHeader,
  vendorOui,
} from '../../core/spi/modules/mad-header.js';
import { Agent, type AgentServices } from './agent.js';
import { GsiPort, type MadPortCounters } from './gsi-port.js';
import { MethodTable } from './method-table.js';
import { newRmppCounters, type RmppCounters } from './rmpp-counters.js';
import { DEFAULT_RMPP_LIMITS, RMPP_LIMITS, RmppAllowance, type RmppLimits } from './rmpp-limits.js';
import { postAnswer, type TransmissionOwner } from './transmission.js';
import { isRmppActive, parseRmppHeader, RMPP_TYPE } from './wire/rmpp-header.js';

export interface MadDependencies {
  readonly device: Device;
  readonly timers: Timers;
  readonly clock: Clock;
  readonly random: Random;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
}

export interface MadOptions {
  /** Sends in flight on QP1, 1 to 32,768; default 128. */
  readonly sendDepth?: number;
  /** Receives posted on QP1, 1 to 32,768; default 512. */
  readonly receiveDepth?: number;
  /** Address handles kept for later sends, 0 to 65,536; default 256. */
  readonly maxIdleAddresses?: number;
  /** Limits on RMPP transfers to this node, in all. */
  readonly rmpp?: Partial<RmppLimits>;
}

const DEPTH = optional(integer(1, 32_768));
const MAX_IDLE_ADDRESSES = 65_536;

/** Allowed values of each option. */
export const MAD_OPTIONS = {
  sendDepth: DEPTH,
  receiveDepth: DEPTH,
  maxIdleAddresses: optional(integer(0, MAX_IDLE_ADDRESSES)),
  rmpp: optional(record(RMPP_LIMITS)),
};

const DEFAULT_SEND_DEPTH = 128;
const DEFAULT_RECEIVE_DEPTH = 512;
const DEFAULT_IDLE_ADDRESSES = 256;
/**
 * An RMPP window is this fraction of QP1's receives, so that a few transfers do not exhaust them.
 */
const WINDOWS_PER_RECEIVE_QUEUE = 8;

/** `close` waits this long for sends on QP1, flushes it, waits as long again, then gives up. */
const CLOSE_STEP_US = 500_000;

/** Owner of replies to requests that no agent takes. They are not reposted after a flush. */
const OF_NO_AGENT: TransmissionOwner = {
  retain: () => undefined,
  release: () => undefined,
  unregistering: true,
};

@plugin({ name: 'mad', kind: 'mad', sdkVersion: '2.0', options: MAD_OPTIONS })
export class Mad implements MadModule {
  readonly counters = {
    /** MADs with a wrong base version, a class of QP0, or a method that the class does not have. */
    refused: 0,
    /** Responses that no agent waits for. */
    unmatchedResponses: 0,
    /** Requests without an agent, and those of them (Get and Set) that were answered. */
    unmatchedRequests: 0,
    answeredUnsupported: 0,
  };
  private readonly port: GsiPort;
  /** Counters of RMPP transfers, over all agents. */
  readonly rmppCounters: RmppCounters = newRmppCounters();
  /** @internal memory that RMPP transfers to this node use now */
  readonly rmppAllowance: RmppAllowance;
  private readonly services: AgentServices;
  private readonly methods = new MethodTable<Agent>();
  private readonly byHiTid = new Map<number, Agent>();
  /** Agents that are registered, or still unregistering. */
  private readonly agents = new Set<Agent>();
  private nextHiTid: number;
  private closed: Promise<void> | undefined;

  /** @throws SpiError('EINVAL') for an option, or if the device does not give us its QP1 */
  constructor(
    @inject({
      device: DEVICE,
      timers: TIMERS,
      clock: CLOCK,
      random: RANDOM,
      scheduler: SCHEDULER,
      logger: LOGGER,
    })
    private readonly dependencies: MadDependencies,
    @inject(OPTIONS) options: MadOptions = {},
  ) {
    checkOptions(options, MAD_OPTIONS, einval);
    const { device, scheduler, timers, clock, logger, random } = dependencies;
    const receiveDepth = options.receiveDepth ?? DEFAULT_RECEIVE_DEPTH;
    this.nextHiTid = random.u32() & 0xffffff;
    this.port = new GsiPort({
      device,
      scheduler,
      timers,
      clock,
      logger,
      sendDepth: options.sendDepth ?? DEFAULT_SEND_DEPTH,
      receiveDepth,
      maxIdleAddresses: options.maxIdleAddresses ?? DEFAULT_IDLE_ADDRESSES,
      onMad: (data, source) => this.onMad(data, source),
      onTorn: () => this.flushAgents(),
    });
    this.rmppAllowance = new RmppAllowance({ ...DEFAULT_RMPP_LIMITS, ...options.rmpp });
    const rmpp = {
      ...dependencies,
      port: this.port,
      counters: this.rmppCounters,
      allowance: this.rmppAllowance,
      window: Math.max(1, Math.floor(receiveDepth / WINDOWS_PER_RECEIVE_QUEUE)),
    };
    this.services = { ...dependencies, port: this.port, rmpp };
  }

  get portCounters(): Readonly<MadPortCounters> {
    return this.port.counters;
  }

  registerAgent(options: MadAgentOptions): MadAgent {
    if (this.closed) throw new SpiError('ENODEV', 'the MAD module is closed');
    const hiTid = this.allocateHiTid();
    const agent = new Agent(hiTid, options, this.services, (leaving) => this.onUnregister(leaving));
    this.methods.add(options, agent);
    this.claimClass(options);
    this.byHiTid.set(agent.hiTid, agent);
    this.agents.add(agent);
    return agent;
  }

  close(): Promise<void> {
    this.closed ??= this.shutDown();
    return this.closed;
  }

  private async shutDown(): Promise<void> {
    const { timers, clock } = this.dependencies;
    const deadline = clock.now() + CLOSE_STEP_US;
    const tear = new Timer(() => this.port.tear('its sends did not complete'));
    const flush = new Timer(() => {
      this.port.flush();
      timers.start(tear, deadline + CLOSE_STEP_US);
    });
    timers.start(flush, deadline);
    await Promise.all([...this.agents].map((agent) => agent.unregister()));
    timers.stop(flush);
    timers.stop(tear);
    this.port.close();
  }

  private onUnregister(agent: Agent): void {
    this.methods.remove(agent.options);
    this.releaseClass(agent.options);
    this.byHiTid.delete(agent.hiTid);
    leaveUnhandled(agent.ended.then(() => this.agents.delete(agent)));
  }

  private flushAgents(): void {
    for (const agent of this.agents) agent.flush();
  }

  /**
   * Claims a class on a shared device: requests of a class go to one process, those of the CM by
   * service id.
   */
  private claimClass(options: MadAgentOptions): void {
    if (!isOwned(options)) return;
    try {
      this.dependencies.device.share?.claimClass(options.managementClass);
    } catch (error) {
      this.methods.remove(options);
      throw error;
    }
  }

  private releaseClass(options: MadAgentOptions): void {
    if (isOwned(options)) this.dependencies.device.share?.releaseClass(options.managementClass);
  }

  /** Allocates 24 bits, cyclically: a late response to a former agent must not match a new one. */
  private allocateHiTid(): number {
    do {
      this.nextHiTid = (this.nextHiTid + 1) & 0xffffff;
    } while (this.nextHiTid === 0 || this.isHiTidTaken(this.nextHiTid));
    return inSlot(this.dependencies.device.share, this.nextHiTid);
  }

  private isHiTidTaken(hiTid: number): boolean {
    return this.byHiTid.has(inSlot(this.dependencies.device.share, hiTid));
  }

  private onMad(data: Uint8Array, source: MadAddress): void {
    const header = parseMadHeader(data);
    if (!header || !isAcceptable(header)) {
      this.counters.refused++;
      return;
    }
    if (isResponse(header)) this.onResponse(data, header, source);
    else this.onRequest(data, header, source);
  }

  private onResponse(data: Uint8Array, header: MadHeader, source: MadAddress): void {
    const agent = this.byHiTid.get(header.transactionIdHi);
    const taken = agent?.take({ data, source }, header) ?? false;
    if (!taken) this.counters.unmatchedResponses++;
  }

  private onRequest(data: Uint8Array, header: MadHeader, source: MadAddress): void {
    const { classVersion, managementClass, method } = header;
    const oui = isVendorRange2(managementClass) ? vendorOui(data) : 0;
    const agent = this.methods.find(classVersion, managementClass, oui, method);
    if (agent) {
      agent.take({ data, source }, header);
      return;
    }
    this.counters.unmatchedRequests++;
    if (wantsAnswer(header, data)) this.answerUnsupported(data, header, source);
  }

  /**
   * Answers a request that no agent takes. Such answers only use free room on QP1, in case of a
   * flood.
   */
  private answerUnsupported(request: Uint8Array, header: MadHeader, source: MadAddress): void {
    if (!this.port.hasRoom) return;
    const data = request.slice();
    const status = MadStatus.METHOD_ATTRIBUTE_UNSUPPORTED;
    emitMadHeader({ ...header, method: MadMethod.GET_RESP, status }, data);
    try {
      postAnswer(this.port, OF_NO_AGENT, data, source);
      this.counters.answeredUnsupported++;
    } catch (error) {
      this.dependencies.logger.debug('a MAD cannot be answered', { error });
    }
  }
}

/** True if the agent takes requests: those of its class have one owner. */
function isOwned({ managementClass, methods }: MadAgentOptions): boolean {
  return methods.length > 0 && managementClass !== MadClass.CM;
}

// Received MADs that are handled at all, and those that are answered without an agent.

/**
 * True if a received MAD is handled at all: SMI classes belong to QP0, and the CM only asks for
 * ClassPortInfo (IBTA 13.5.1, 16.7.1). Agents check the version of a class.
 */
function isAcceptable(header: MadHeader): boolean {
  const { managementClass, method, attributeId } = header;
  if (managementClass === MadClass.SUBN_LID) return false;
  if (managementClass === MadClass.SUBN_DIRECTED_ROUTE) return false;
  if (managementClass !== MadClass.CM) return true;
  return method === MadMethod.SEND || attributeId === CLASS_PORT_INFO_ATTRIBUTE;
}

/**
 * True if a request without an agent is answered: Get and Set are (IBTA 13.4.7), but not segments
 * of an unknown RMPP transfer.
 */
function wantsAnswer({ method, managementClass }: MadHeader, mad: Uint8Array): boolean {
  if (method !== MadMethod.GET && method !== MadMethod.SET) return false;
  const rmpp = isRmppClass(managementClass) && isRmppActive(mad) ? parseRmppHeader(mad) : undefined;
  return rmpp === undefined || rmpp.type === RMPP_TYPE.DATA;
}
