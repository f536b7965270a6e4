/** A verbs device of this process: the device, its driver, and what keeps the process alive. */
import type { Logger } from '../../core/spi/index.js';
import { ProcessHoldCounter, SystemRandom, monotonicClock } from '../host/index.js';
import { VerbsDevice, type VerbsDeviceOptions } from './device.js';
import { VerbsDriver } from './driver.js';

export type VerbsNodeOptions = Omit<VerbsDeviceOptions, 'pump' | 'time'>;

export class VerbsNode {
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
    this.device = new VerbsDevice({ ...options, pump, time });
    this.device.onClosed = () => this.driver.close();
    this.processHold = new ProcessHoldCounter((alive) => {
      this.driver.setProcessHold(alive);
      this.device.setProcessHold(alive);
    });
  }
}
