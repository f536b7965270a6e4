/**
 * A softroce device of this process: the software HCA on a socket port, driven by the event loop. A
 * doorbell rung in consumer code leaves at the end of the present task (one microtask), so what a
 * task posts goes out in one burst; packets and deadlines wake the loop.
 */
import type { Logger, Scheduler, Timer, Timers } from '../../core/spi/index.js';
import { type HcaDevice, HcaDriver, type HcaParameters } from '../hca/index.js';
import {
  KeepAliveCounter,
  NextTurn,
  RealTimer,
  SystemRandom,
  monotonicClock,
} from '../host/index.js';
import type { SocketPort } from './port-options.js';

/** How long the port is polled after activity while an EVD asks for `adaptive`. */
const ADAPTIVE_POLL_US = 200;

export interface SoftroceNodeOptions {
  readonly name: string;
  readonly port: SocketPort;
  readonly logger: Logger;
  readonly parameters: Partial<HcaParameters>;
}

export class SoftroceNode {
  readonly port: SocketPort;
  readonly device: HcaDevice;
  readonly scheduler: Scheduler;
  readonly random = new SystemRandom();
  readonly keepAlive: KeepAliveCounter;
  /** The device's wheel; a start outside of the pump moves the real timer too. */
  readonly timers: Timers;
  private readonly driver: HcaDriver;
  private readonly timer: RealTimer;
  /** Pumps again after the event loop has had its turn. */
  private readonly nextTurn = new NextTurn(() => this.pump());
  private pumpQueued = false;
  private pollUntilUs = 0;
  private closed = false;

  constructor(options: SoftroceNodeOptions) {
    const { name, port, logger, parameters } = options;
    this.port = port;
    this.driver = new HcaDriver({
      name,
      port,
      clock: monotonicClock,
      random: this.random,
      logger,
      parameters,
      requestPump: () => this.queuePump(),
    });
    this.scheduler = this.driver;
    this.timer = new RealTimer(monotonicClock, () => this.pump());
    this.keepAlive = new KeepAliveCounter((alive) => this.setKeepAlive(alive));
    this.timers = {
      start: (timer: Timer, deadlineUs: number) => {
        this.driver.timers.start(timer, deadlineUs);
        this.timer.arm(this.driver.nextDeadlineUs());
      },
      stop: (timer: Timer) => this.driver.timers.stop(timer),
    };
    port.watch(this.driver.portHandlers(() => this.pump()));
    this.device = this.driver.device;
    this.device.onClosed = () => this.close();
    if (port.mapFile !== undefined) this.device.mapFile = port.mapFile.bind(port);
  }

  private queuePump(): void {
    if (this.pumpQueued || this.closed) return;
    this.pumpQueued = true;
    queueMicrotask(() => this.pump());
  }

  private pump(): void {
    this.pumpQueued = false;
    if (this.closed) return;
    const before = this.port.counters.receivedPackets;
    const busy = this.driver.pump();
    this.timer.arm(this.driver.nextDeadlineUs());
    if (busy || this.pollsOn(before)) this.nextTurn.request();
  }

  /** Whether the port is looked at again at once, without waiting for the system to wake us. */
  private pollsOn(receivedBefore: number): boolean {
    if (this.device.hca.adaptiveCqs === 0) return false;
    const nowUs = monotonicClock.now();
    if (this.port.counters.receivedPackets !== receivedBefore) {
      this.pollUntilUs = nowUs + ADAPTIVE_POLL_US;
    }
    return nowUs < this.pollUntilUs;
  }

  private setKeepAlive(alive: boolean): void {
    this.port.setKeepAlive(alive);
    this.timer.setKeepAlive(alive);
    this.nextTurn.setKeepAlive(alive);
  }

  private close(): void {
    this.closed = true;
    this.timer.close();
    this.nextTurn.cancel();
  }
}
