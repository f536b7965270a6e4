/**
 * A softroce device of this process: the software HCA on a socket port, driven by the event loop.
 */
import type { Logger, PacketPort, Scheduler, Timers } from '../../core/spi/index.js';
import { type HcaDevice, HcaDriver, type HcaParameters } from '../hca/index.js';
import { LIMITS, SpinPacer } from '../hca/pacing/index.js';
import {
  EventLoop,
  type HostNode,
  ProcessHoldCounter,
  SystemRandom,
  monotonicClock,
  onExit,
} from '../host/index.js';
import { SOCKET_PORT_COUNTERS, type SocketPort } from './port-options.js';

/** When the process ends: so long for goodbyes, and for sending what they have come to. */
const GOODBYES_US = 500_000;
const LAST_SENDS_US = 500_000;

const REST_US = LIMITS.REST_US.value;
/** Of this process. */
const SPIN = new SpinPacer();

export interface SoftroceNodeOptions {
  readonly name: string;
  readonly port: SocketPort;
  /** What the device reaches that port by; default the port itself. */
  readonly through?: PacketPort;
  readonly logger: Logger;
  readonly parameters: Partial<HcaParameters>;
}

export class SoftroceNode implements HostNode {
  readonly port: PacketPort;
  readonly device: HcaDevice;
  readonly scheduler: Scheduler;
  readonly random = new SystemRandom();
  readonly processHold: ProcessHoldCounter;
  /** The device's wheel: a start outside of the pump asks for one, which arms the real timer. */
  readonly timers: Timers;
  private readonly driver: HcaDriver;
  private readonly loop: EventLoop;
  private noExit: (() => void) | undefined = undefined;

  constructor(options: SoftroceNodeOptions) {
    const { name, port: socketPort, logger, parameters } = options;
    const { mapFile, allocate } = socketPort;
    const rest = socketPort.rest?.bind(socketPort);
    const port = options.through ?? socketPort;
    this.port = port;
    this.driver = new HcaDriver({
      name,
      port,
      clock: monotonicClock,
      random: this.random,
      logger,
      parameters,
      requestPump: () => this.loop.request(),
      ...(rest && {
        onSpin: (busy, nowUs) => {
          if (SPIN.rests(busy, nowUs)) rest(REST_US);
        },
      }),
      hooks: {
        portCounters: SOCKET_PORT_COUNTERS,
        onClosed: () => this.close(),
        ...(mapFile && { mapFile: mapFile.bind(socketPort) }),
        ...(allocate && { allocate: allocate.bind(socketPort) }),
      },
    });
    this.scheduler = this.driver;
    this.loop = new EventLoop(monotonicClock, this.driver, this.driver);
    this.processHold = new ProcessHoldCounter((alive) => this.setProcessHold(alive));
    this.timers = this.driver.timers;
    port.watch(this.driver.portHandlers(this.loop.wake));
    this.device = this.driver.device;
  }

  /**
   * When the process exits with the device open, peers get to know: what `goodbyes` posts leaves
   * before the process ends, within a second.
   */
  atExit(goodbyes: (mayGoOn: () => boolean) => void): void {
    this.noExit = onExit(() => {
      const startUs = monotonicClock.now();
      goodbyes(() => monotonicClock.now() < startUs + GOODBYES_US);
      this.driver.sendLast(startUs + GOODBYES_US + LAST_SENDS_US);
    });
  }

  private setProcessHold(alive: boolean): void {
    this.port.setProcessHold(alive);
    this.loop.setProcessHold(alive);
  }

  private close(): void {
    this.noExit?.();
    this.loop.close();
  }
}
