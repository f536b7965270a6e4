/** A verbs device of this process: the device, its driver, and what keeps the process alive. */
import type { Logger, Scheduler, Timers } from '../../core/spi/index.js';
import { type HostNode, ProcessHoldCounter, SystemRandom, monotonicClock } from '../host/index.js';
import { VerbsDevice, type VerbsDeviceOptions } from './device.js';
import { VerbsDriver } from './driver.js';

export type VerbsNodeOptions = Omit<VerbsDeviceOptions, 'pump' | 'time' | 'onClosed'>;

export class VerbsNode implements HostNode {
  readonly clock = monotonicClock;
  readonly random = new SystemRandom();
  readonly driver: VerbsDriver;
  readonly device: VerbsDevice;
  readonly processHold: ProcessHoldCounter;

  /** @throws SpiError as VerbsDevice */
  constructor(options: VerbsNodeOptions) {
    const logger: Logger = options.logger;
    this.driver = new VerbsDriver(this.clock, logger);
    const pump = (handler: () => void): void => this.driver.defer(handler);
    const time = { clock: this.clock, timers: this.driver.timers };
    const onClosed = (): void => this.driver.close();
    this.device = new VerbsDevice({ ...options, pump, time, onClosed });
    this.processHold = new ProcessHoldCounter((alive) => {
      this.driver.setProcessHold(alive);
      this.device.setProcessHold(alive);
    });
  }

  get timers(): Timers {
    return this.driver.timers;
  }

  get scheduler(): Scheduler {
    return this.driver;
  }
}
