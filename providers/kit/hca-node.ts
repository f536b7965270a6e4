/** The software HCA on a packet port of any kind, driven by the event loop. */
import type {
  CmModule,
  HandedPacket,
  PacketPort,
  Random,
  Scheduler,
  Timers,
} from '../../core/spi/index.js';
import { type DeviceSetup, type HcaDevice, HcaDriver } from '../hca/index.js';
import { LIMITS, LoopPacer, PollGain, SpinPacer } from '../hca/pacing/index.js';
import type { HostNode } from '../host/bind-node.js';
import { EventLoop, type HostTime } from '../host/event-loop.js';
import { ProcessHoldCounter } from '../host/process.js';

/** Time limits at the end of the process: for the CM's messages, and for sending their packets. */
const EXIT_MESSAGES_US = 500_000;
const LAST_SENDS_US = 500_000;

const REST_US = LIMITS.REST_US.value;
/** Shared by all devices of this process. */
const SPIN = new SpinPacer();

export interface HcaNodeOptions extends DeviceSetup {
  /**
   * Sleeps until a packet comes, for so many microseconds at most: for a consumer that polls in
   * vain. Absent where the port cannot; it is polled on, then.
   */
  readonly rest?: ((mostUs: number) => void) | undefined;
  readonly time: HostTime;
}

export class HcaNode implements HostNode {
  readonly port: PacketPort;
  readonly device: HcaDevice;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly processHold: ProcessHoldCounter;
  /** The device's wheel: a start outside of the pump asks for one, which arms the real timer. */
  readonly timers: Timers;
  readonly driver: HcaDriver;
  private readonly loop: EventLoop;
  private readonly time: HostTime;
  private noExit: (() => void) | undefined = undefined;

  constructor(options: HcaNodeOptions) {
    const { port, hooks, rest, time } = options;
    const { clock, calls, machine } = time;
    this.port = port;
    this.time = time;
    this.random = time.random;
    this.driver = new HcaDriver({
      ...options,
      clock,
      random: this.random,
      requestPump: () => this.loop.request(),
      ...(rest && {
        onSpin: (busy, nowUs) => {
          if (SPIN.rests(busy, nowUs)) rest(REST_US);
        },
      }),
      hooks: {
        ...hooks,
        onClosed: () => {
          hooks?.onClosed?.();
          this.close();
        },
      },
    });
    this.scheduler = this.driver;
    const { driver } = this;
    if (machine) {
      const pacer = new LoopPacer(driver.pacer, new PollGain(machine.originUs, machine.countCores));
      this.loop = new EventLoop(clock, calls, driver, driver, pacer);
    } else {
      // Virtual time passes between pumps alone: each is a turn.
      this.loop = new EventLoop(clock, calls, {
        pump: (untilHandlers) => driver.pump(untilHandlers),
        nextDeadlineUs: () => driver.nextDeadlineUs(),
        isExact: true,
      });
    }
    this.processHold = new ProcessHoldCounter((alive) => {
      port.setProcessHold(alive);
      this.loop.setProcessHold(alive);
    });
    this.timers = this.driver.timers;
    port.watch(this.driver.portHandlers(machine ? this.loop.wake : this.loop.request));
    this.device = this.driver.device;
  }

  /**
   * When the process exits with the device open, peers get to know: what the CM posts leaves before
   * the process ends, within a second.
   */
  atExit(cm: CmModule): void {
    const { clock, machine } = this.time;
    this.noExit = machine?.onExit(() => {
      const startUs = clock.now();
      cm.sayGoodbye?.(() => clock.now() < startUs + EXIT_MESSAGES_US);
      this.driver.sendLast(startUs + EXIT_MESSAGES_US + LAST_SENDS_US);
    });
  }

  /** A packet that came to another process of the device. Not from inside of a call to it. */
  takeHanded(packet: HandedPacket): void {
    if (!this.driver.isClosing) this.driver.takeHanded(packet);
  }

  private close(): void {
    this.noExit?.();
    const { calls, machine } = this.time;
    if (machine || this.device.hca.notifications.length === 0) return this.loop.close();
    // Notifications left by closing are delivered in a step of their own, the last one.
    const end = (): void => {
      this.driver.pump();
      this.loop.close();
    };
    calls.microtask(end)();
  }
}
