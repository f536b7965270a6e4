/**
 * The MAD module of a verbs device: agents of the kernel's ib_mad, by /dev/infiniband/umadN
 * (ib_user_mad, ABI 5). Nothing is opened before the first agent: who wants none needs no right to
 * that device.
 */
import { SpiError } from '../../core/spi/index.js';
import type {
  Clock,
  Logger,
  MadAgent,
  MadAgentOptions,
  MadModule,
  Random,
  Scheduler,
  Timers,
} from '../../core/spi/index.js';
import { MethodTable } from '../../plugins/mad/index.js';
import { UmadAgent } from './mad-agent.js';
import type { UmadCounters, UmadGidTable } from './mad-agent.js';
import type { UmadNative } from './mad-native.js';

export type { UmadCounters, UmadGidTable } from './mad-agent.js';

export interface UmadDependencies {
  readonly native: UmadNative;
  /** Of the character device. @throws SpiError when there is none */
  readonly path: () => string;
  readonly gidTable: UmadGidTable;
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
  /** Refuses here what the kernel would refuse without saying why. */
  private readonly methods = new MethodTable<UmadAgent>();
  private readonly byHiTid = new Map<number, UmadAgent>();
  /** Registered, or not yet through with unregistering. */
  private readonly agents = new Set<UmadAgent>();
  private nextHiTid: number;
  private closed: Promise<void> | undefined;

  constructor(private readonly dependencies: UmadDependencies) {
    this.nextHiTid = dependencies.random.u32() & 0xffffff;
  }

  /**
   * @throws SpiError as `MadModule`; ('EACCES') no right to the device, ('ENODEV') it is gone,
   * ('EOPNOTSUPP') the port has none, ('ENOMEM') no more files
   */
  registerAgent(options: MadAgentOptions): MadAgent {
    if (this.closed) throw new SpiError('ENODEV', 'the MAD module is closed');
    this.methods.check(options);
    const { dependencies, counters } = this;
    const services = { ...dependencies, counters, path: dependencies.path() };
    const agent = new UmadAgent(this.allocateHiTid(), options, services, (leaving) =>
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

  private onUnregister(agent: UmadAgent): void {
    this.byHiTid.delete(agent.hiTid);
    // Until then the kernel has its methods.
    void agent.ended.then(() => {
      this.methods.remove(agent.options);
      this.agents.delete(agent);
    });
  }

  /** 24 bits, for the consumer: the kernel has numbers of its own. */
  private allocateHiTid(): number {
    do {
      this.nextHiTid = (this.nextHiTid + 1) & 0xffffff;
    } while (this.nextHiTid === 0 || this.byHiTid.has(this.nextHiTid));
    return this.nextHiTid;
  }
}
