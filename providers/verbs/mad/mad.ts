/**
 * The MAD module of a verbs device: agents of the kernel's ib_mad, by /dev/infiniband/umadN
 * (ib_user_mad, ABI 5). Nothing is opened before the first agent: without one no right to that
 * device is needed.
 */
import {
  CLOCK,
  type Clock,
  DEVICE,
  type Device,
  inject,
  isIpv4Gid,
  leaveUnhandled,
  LOGGER,
  type Logger,
  type MadAgent,
  type MadAgentOptions,
  type MadModule,
  RANDOM,
  type Random,
  SCHEDULER,
  type Scheduler,
  SpiError,
  TIMERS,
  type Timers,
} from '../../../core/spi/index.js';
import { type RmppLimits } from '../../../plugins/mad/index.js';
import {
  DEFAULT_RMPP_LIMITS,
  MethodTable,
  newRmppCounters,
  RmppAllowance,
} from '../../../plugins/mad/provider.js';
import { UmadAgent } from './agent.js';
import type { UmadNative } from '../addon/umad.js';
import type { GidPlaces, PortAgent, UmadCounters } from './services.js';
import { TransferAgent } from './transfer-agent.js';
import { OWN_DEVICE } from '../objects/open-device.js';
import { ADDON } from '../opening/libraries.js';
import { UMAD_PATH } from './device.js';

/**
 * The part that segments and reassembles transfers longer than a datagram: Linux, or the transfers
 * of plugins/mad. `auto`: the kernel, unless the port has an IPv4 address, where it cannot.
 */
export type RmppBy = 'auto' | 'kernel' | 'module';

export interface UmadOptions {
  /** Default `auto`. */
  readonly rmppBy?: RmppBy;
  /** Limits of transfers to this node, if the module handles them. */
  readonly rmpp?: Partial<RmppLimits>;
}

export interface UmadDependencies {
  readonly native: UmadNative;
  /** The path of the character device. @throws SpiError when there is none */
  readonly path: () => string;
  readonly device: Pick<Device, 'gids'>;
  readonly own: GidPlaces;
  readonly timers: Timers;
  readonly clock: Clock;
  readonly random: Random;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
}

export class Umad implements MadModule {
  readonly counters: UmadCounters = {
    unmatchedResponses: 0,
    lateTimeouts: 0,
    withoutGid: 0,
    silences: 0,
  };
  readonly rmppCounters = newRmppCounters();
  private readonly rmppAllowance: RmppAllowance;
  private readonly rmppBy: RmppBy;
  /** Refuses here what the kernel would refuse without saying why. */
  private readonly methods = new MethodTable<PortAgent>();
  private readonly byHiTid = new Map<number, PortAgent>();
  /** Registered, or not yet through with unregistering. */
  private readonly agents = new Set<PortAgent>();
  private nextHiTid: number;
  private closed: Promise<void> | undefined;

  constructor(
    @inject({
      native: ADDON,
      path: UMAD_PATH,
      device: DEVICE,
      own: OWN_DEVICE,
      timers: TIMERS,
      clock: CLOCK,
      random: RANDOM,
      scheduler: SCHEDULER,
      logger: LOGGER,
    })
    private readonly dependencies: UmadDependencies,
    options: UmadOptions = {},
  ) {
    this.nextHiTid = dependencies.random.u32() & 0xffffff;
    this.rmppBy = options.rmppBy ?? 'auto';
    this.rmppAllowance = new RmppAllowance({ ...DEFAULT_RMPP_LIMITS, ...options.rmpp });
  }

  /**
   * @throws SpiError as `MadModule`; ('EACCES') no right to the device, ('ENODEV') it is gone,
   * ('EOPNOTSUPP') the port has none, ('ENOMEM') no more files
   */
  registerAgent(options: MadAgentOptions): MadAgent {
    if (this.closed) throw new SpiError('ENODEV', 'the MAD module is closed');
    this.methods.check(options);
    const { dependencies, counters, rmppCounters, rmppAllowance } = this;
    const path = dependencies.path();
    const services = { ...dependencies, path, counters, rmppCounters, rmppAllowance };
    const ownTransfers = options.rmpp === true && !this.kernelHasRmpp();
    const AgentClass = ownTransfers ? TransferAgent : UmadAgent;
    const agent = new AgentClass(this.allocateHiTid(), options, services, (leaving) =>
      this.onUnregister(leaving),
    );
    this.methods.add(options, agent);
    this.byHiTid.set(agent.hiTid, agent);
    this.agents.add(agent);
    return agent;
  }

  close(): Promise<void> {
    this.closed ??= Promise.all([...this.agents].map((agent) => agent.unregister())).then(
      () => undefined,
    );
    return this.closed;
  }

  private kernelHasRmpp(): boolean {
    if (this.rmppBy !== 'auto') return this.rmppBy === 'kernel';
    return !this.dependencies.device.gids.some((gid) => isIpv4Gid(gid));
  }

  private onUnregister(agent: PortAgent): void {
    this.byHiTid.delete(agent.hiTid);
    // Until then the kernel has its methods.
    leaveUnhandled(
      agent.ended.then(() => {
        this.methods.remove(agent.options);
        this.agents.delete(agent);
      }),
    );
  }

  /** 24 bits, for the consumer: the kernel has numbers of its own. */
  private allocateHiTid(): number {
    do {
      this.nextHiTid = (this.nextHiTid + 1) & 0xffffff;
    } while (this.nextHiTid === 0 || this.byHiTid.has(this.nextHiTid));
    return this.nextHiTid;
  }
}
