/** The software HCA on a packet port of any kind, driven by the event loop. */
import type { Logger, PacketPort, Scheduler, TimerEntry, Timers } from '../../core/spi/index.js';
import { type HcaDevice, HcaDriver, type HcaParameters } from '../hca/index.js';
import {
  type HostNode,
  monotonicClock,
  NextTurn,
  onExit,
  ProcessHoldCounter,
  RealTimer,
  SystemRandom,
} from '../host/index.js';

/** When the process ends: so long for goodbyes, and for sending what they have come to. */
const GOODBYES_US = 500_000;
const LAST_SENDS_US = 500_000;

export interface HcaNodeOptions {
  readonly name: string;
  readonly port: PacketPort;
  readonly logger: Logger;
  readonly parameters: Partial<HcaParameters>;
}

export class HcaNode implements HostNode {
  readonly device: HcaDevice;
  readonly random = new SystemRandom();
  readonly processHold: ProcessHoldCounter;
  readonly scheduler: Scheduler;
  /** A start outside of the pump moves the real timer, too. */
  readonly timers: Timers;
  private readonly driver: HcaDriver;
  private readonly timer = new RealTimer(monotonicClock, () => this.pump());
  private readonly turn = new NextTurn(() => this.pump());
  private closed = false;
  private noExit: (() => void) | undefined = undefined;

  constructor({ name, port, logger, parameters }: HcaNodeOptions) {
    this.driver = new HcaDriver({
      name,
      port,
      clock: monotonicClock,
      random: this.random,
      logger,
      parameters,
      requestPump: () => this.wake(),
      hooks: { onClosed: () => this.close() },
    });
    this.device = this.driver.device;
    this.scheduler = this.driver;
    this.timers = {
      start: (timer: TimerEntry, deadlineUs: number) => {
        this.driver.timers.start(timer, deadlineUs);
        this.timer.arm(this.driver.nextDeadlineUs());
      },
      stop: (timer: TimerEntry) => this.driver.timers.stop(timer),
    };
    this.processHold = new ProcessHoldCounter((alive) => {
      port.setProcessHold(alive);
      this.timer.setProcessHold(alive);
      this.turn.setProcessHold(alive);
    });
    port.watch(this.driver.portHandlers(() => this.pump()));
  }

  /** When the process exits with the device open, peers get to know, within a second. */
  atExit(goodbyes: (mayGoOn: () => boolean) => void): void {
    this.noExit = onExit(() => {
      const startUs = monotonicClock.now();
      goodbyes(() => monotonicClock.now() < startUs + GOODBYES_US);
      this.driver.sendLast(startUs + GOODBYES_US + LAST_SENDS_US);
    });
  }

  private wake(): void {
    if (!this.closed) this.turn.request();
  }

  private pump(): void {
    if (this.closed) return;
    const isBusy = this.driver.pump();
    // A handler may have closed the device.
    if (this.closed) return;
    if (isBusy) this.turn.request();
    else this.timer.arm(this.driver.nextDeadlineUs());
  }

  private close(): void {
    this.closed = true;
    this.noExit?.();
    this.timer.close();
    this.turn.cancel();
  }
}
