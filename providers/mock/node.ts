/**
 * A node of a fabric: the software HCA on a memory port, driven by virtual time. The provider opens
 * one for each device; tests of the verbs level use it as it is.
 */
import { checkOptions, instanceOf, OBJECT, optional, TEXT } from '../../core/spi/checks/index.js';
import { einval } from '../../core/spi/errors/einval.js';
import {
  AsyncEventType,
  type HandedPacket,
  type Logger,
  type PacketPort,
  type ProcessHold,
  QpType,
  type Random,
  type Scheduler,
  silentLogger,
  type Timers,
} from '../../core/spi/index.js';
import { FaultScript } from '../../plugins/faults/grammar/fault-script.js';
import {
  RECEIVE_FAULTS,
  type ReceiveAction,
  type ReceiveMatch,
  type ReceiveView,
} from '../../plugins/faults/grammar/receive-faults.js';
import { SeededRandom } from '../../plugins/faults/grammar/seeded-random.js';
import {
  SEND_FAULTS,
  type SendAction,
  type SendMatch,
  type SendView,
} from '../../plugins/faults/grammar/send-faults.js';
import { PARAMETERS } from '../hca/common/parameters.js';
import { PORT_OPTIONS } from '../hca/common/port-options.js';
import type { HcaDevice, HcaDriver, HcaParameters } from '../hca/index.js';
import type { HostNode, LoopCalls } from '../host/index.js';
import { HcaNode } from '../kit/hca-node.js';
import type { Fabric } from './fabric.js';
import type { JoinedGroup } from './join-group.js';
import { MEMORY_PORT_COUNTERS, MemoryPort } from './memory-port.js';
import { type VirtualClock, VirtualTimer } from './virtual-clock.js';

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
  /** The port by which the device reaches that port; default: the port itself. */
  readonly through?: PacketPort;
  /** @internal where other processes have the device, too */
  readonly group?: JoinedGroup;
}

const NODE_OPTIONS = {
  addresses: PORT_OPTIONS.addresses,
  name: optional(TEXT),
  mtuBytes: PORT_OPTIONS.mtuBytes,
  parameters: PARAMETERS,
  logger: optional(OBJECT),
  port: optional(instanceOf(MemoryPort, 'a MemoryPort of the fabric')),
  through: optional(OBJECT),
  group: optional(OBJECT),
};

export class MockNode implements HostNode {
  readonly port: MemoryPort;
  /**
   * Fault rules of send requests. A request that is hit fails, unsent, on a queue pair of any type.
   * Its queue pair fails with it: RC goes to ERR, UC and UD (QP1 too, which sends MADs) to SQE.
   */
  readonly sendFaults: FaultScript<SendView, SendMatch, SendAction>;
  /** Fault rules of messages to a connection here that need a receive: those hit find none. */
  readonly receiveFaults: FaultScript<ReceiveView, ReceiveMatch, ReceiveAction>;
  /** Its name, if several processes share the address. */
  readonly process: string | undefined;
  /** @internal where other processes have the device, too */
  readonly group: JoinedGroup | undefined;
  private readonly node: HcaNode;
  private removed = false;

  /** @throws SpiError('EADDRINUSE') as `Fabric.openPort`; ('EINVAL') for an option */
  constructor(
    readonly fabric: Fabric,
    options: MockNodeOptions,
  ) {
    checkOptions(options, NODE_OPTIONS, einval);
    const { addresses, mtuBytes, logger = silentLogger, parameters = {} } = options;
    this.port =
      options.port ??
      fabric.openPort({ addresses, ...(mtuBytes === undefined ? {} : { mtuBytes }) });
    this.group = options.group;
    this.process = options.group?.process;
    const { clock } = fabric;
    const random = fabric.random.fork();
    const { seed } = fabric.random;
    const chance = (each: number): SeededRandom => new SeededRandom(each);
    this.sendFaults = new FaultScript(SEND_FAULTS, seed, chance);
    this.receiveFaults = new FaultScript(RECEIVE_FAULTS, seed, chance);
    this.node = new HcaNode({
      name: options.name ?? `mock ${addresses[0] ?? ''}`,
      port: options.through ?? this.port,
      logger,
      parameters,
      hooks: { portCounters: MEMORY_PORT_COUNTERS, onClosed: () => this.group?.leave() },
      share: options.group?.share,
      time: { clock, calls: virtualCalls(clock), random },
      sendFault: ({ qpn }, opcode) =>
        this.sendFaults.any ? this.sendFaults.decide({ qpn, opcode })?.status : undefined,
      receiveFault: ({ qpn }) =>
        this.receiveFaults.any && this.receiveFaults.decide({ qpn }) !== undefined,
    });
    fabric.addNode(this);
  }

  get driver(): HcaDriver {
    return this.node.driver;
  }

  get device(): HcaDevice {
    return this.node.device;
  }

  get random(): Random {
    return this.node.random;
  }

  /** The device's wheel: a start outside of the pump asks for one, which arms the loop's timer. */
  get timers(): Timers {
    return this.node.timers;
  }

  get processHold(): ProcessHold {
    return this.node.processHold;
  }

  get scheduler(): Scheduler {
    return this.node.scheduler;
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

  /**
   * Kills its process, at any moment: its pending work is not done. If others share the address,
   * one of them cleans up after it. In the next step its own consumer is notified as by `remove`,
   * so that a test can close what it had.
   */
  kill(): void {
    this.group?.host.kill();
    this.port.unplug();
    this.fabric.clock.soon(() => this.remove());
  }

  /** @internal a packet of another process of the device. Not from inside of a call to it. */
  takeHanded(packet: HandedPacket): void {
    this.node.takeHanded(packet);
  }

  /** Ends the device; everything of it is destroyed in order. */
  close(): Promise<void> {
    return this.device.close();
  }
}

// How an event loop in virtual time calls a task later: in a step of its own, at the same time.

/** All microtasks of a step run before the next one: there is no need to tell them apart. */
function virtualCalls(clock: VirtualClock): LoopCalls {
  const soon = (task: () => void) => (): void => void clock.soon(task);
  return {
    microtask: soon,
    lastMicrotask: soon,
    turn: (task) => {
      const step = new VirtualTimer(clock, task);
      return { request: () => step.arm(clock.now()), cancel: () => step.close() };
    },
    timer: (_, onDeadline) => new VirtualTimer(clock, onDeadline),
  };
}
