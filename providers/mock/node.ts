/**
 * A node of a fabric: the software HCA on a memory port, driven by virtual time. The provider opens
 * one for each device; tests of the verbs level use it as it is.
 */
import {
  ANYTHING,
  checkOptions,
  integer,
  kindOf,
  optional,
  outOfRange,
} from '../../core/spi/checks/index.js';
import {
  AsyncEventType,
  type Logger,
  type PacketPort,
  type ProcessHold,
  QpType,
  type Random,
  type Scheduler,
  silentLogger,
  type TimerEntry,
  type Timers,
  WcStatus,
  type WrOpcode,
} from '../../core/spi/index.js';
import { type HcaDevice, HcaDriver, type HcaParameters } from '../hca/index.js';
import { type HostNode, ProcessHoldCounter } from '../host/index.js';
import type { Fabric } from './fabric.js';
import { NTH } from './faults.js';
import { MEMORY_PORT_COUNTERS, type MemoryPort } from './memory-port.js';
import { VirtualTimer } from './virtual-clock.js';

export interface MockNodeOptions {
  /** IP addresses in text, of the fabric's own making; the first one is the default. */
  readonly addresses: readonly string[];
  /** Default: `mock` and the first address. */
  readonly name?: string;
  readonly mtuBytes?: number;
  readonly parameters?: Partial<HcaParameters>;
  readonly logger?: Logger;
  /** A port of the fabric that is open already, in place of one with these addresses. */
  readonly port?: MemoryPort;
  /** What the device reaches that port by; default the port itself. */
  readonly through?: PacketPort;
}

/** Which send work requests are to fail, and how. */
export interface SendFaultRule {
  readonly status: WcStatus;
  readonly qpn?: number;
  /** A number of `WrOpcode`. */
  readonly opcode?: WrOpcode;
  /** The first match that fails, from 1 (default). */
  readonly nth?: number;
}

const SEND_FAULT = {
  status: kindOf<WcStatus>('that of a failure', (status) => status !== WcStatus.SUCCESS),
  qpn: optional(integer(0, 0xffffff)),
  opcode: ANYTHING,
  nth: NTH,
};

interface SendFault extends SendFaultRule {
  left: number;
}

export class MockNode implements HostNode {
  readonly port: MemoryPort;
  readonly driver: HcaDriver;
  readonly device: HcaDevice;
  /** The device's wheel, for modules and core: a start outside of the pump is noticed too. */
  readonly timers: Timers;
  readonly processHold: ProcessHold;
  readonly random: Random;
  private readonly timer: VirtualTimer;
  private readonly sendFaults: SendFault[] = [];
  private wakePending = false;
  private removed = false;

  /** @throws SpiError('EADDRINUSE') as `Fabric.openPort` */
  constructor(
    readonly fabric: Fabric,
    options: MockNodeOptions,
  ) {
    const { addresses, mtuBytes, logger = silentLogger, parameters = {} } = options;
    this.port =
      options.port ??
      fabric.openPort({ addresses, ...(mtuBytes === undefined ? {} : { mtuBytes }) });
    const port = options.through ?? this.port;
    this.random = fabric.random.fork();
    this.driver = new HcaDriver({
      name: options.name ?? `mock ${addresses[0] ?? ''}`,
      port,
      clock: fabric.clock,
      random: this.random,
      logger,
      parameters,
      requestPump: () => this.wake(),
      hooks: { portCounters: MEMORY_PORT_COUNTERS, onClosed: () => this.timer.close() },
      sendFault: (qp, opcode) => this.sendFault(qp.qpn, opcode),
    });
    this.device = this.driver.device;
    this.timer = new VirtualTimer(fabric.clock, () => this.pump());
    port.watch(this.driver.portHandlers(() => this.wake()));
    this.processHold = new ProcessHoldCounter((alive) => port.setProcessHold(alive));
    this.timers = {
      start: (timer: TimerEntry, deadlineUs: number) => {
        this.driver.timers.start(timer, deadlineUs);
        this.arm();
      },
      stop: (timer: TimerEntry) => this.driver.timers.stop(timer),
    };
    fabric.addNode(this);
  }

  get scheduler(): Scheduler {
    return this.driver;
  }

  /**
   * The n-th send request that matches fails with this status, unsent, on a queue pair of any type,
   * and its queue pair with it: RC goes to ERR, UC and UD (QP1 too, where MADs go out) to SQE.
   * @throws RangeError for a status that is no failure, and an `nth` that does not count from 1
   */
  failSend(rule: SendFaultRule): void {
    checkOptions(rule, SEND_FAULT, outOfRange);
    this.sendFaults.push({ ...rule, left: rule.nth ?? 1 });
  }

  /**
   * The device is gone, as when an adapter is pulled out: its packets are lost, its queue pairs go
   * to ERR and flush, and DEVICE_FATAL tells, the owner of QP1 as well.
   */
  remove(): void {
    if (this.removed) return;
    this.removed = true;
    this.port.unplug();
    const { hca } = this.device;
    for (const qp of [...hca.queuePairs]) {
      if (qp.type === QpType.GSI) qp.raise(AsyncEventType.DEVICE_FATAL);
      qp.toError();
    }
    hca.publish();
    this.device.raise(AsyncEventType.DEVICE_FATAL);
  }

  /** Ends the device; everything of it is destroyed in order. */
  close(): Promise<void> {
    return this.device.close();
  }

  private wake(): void {
    if (this.wakePending) return;
    this.wakePending = true;
    this.fabric.clock.soon(() => this.pump());
  }

  private pump(): void {
    this.wakePending = false;
    const busy = this.driver.pump();
    if (busy) this.wake();
    this.arm();
  }

  private arm(): void {
    this.timer.arm(this.driver.nextDeadlineUs());
  }

  private sendFault(qpn: number, opcode: number): WcStatus | undefined {
    for (const fault of this.sendFaults) {
      if (fault.qpn !== undefined && fault.qpn !== qpn) continue;
      if (fault.opcode !== undefined && fault.opcode !== opcode) continue;
      if (--fault.left > 0) continue;
      this.sendFaults.splice(this.sendFaults.indexOf(fault), 1);
      return fault.status;
    }
    return undefined;
  }
}
