/** The services that core takes from a device's container. */
import 'reflect-metadata';
import { inject, injectable } from 'tsyringe';
import {
  CLOCK,
  type Clock,
  CM,
  type CmModule,
  DEVICE,
  type Device,
  PROCESS_HOLD,
  type ProcessHold,
  LOGGER,
  type Logger,
  MAD,
  RANDOM,
  type Random,
  SCHEDULER,
  type Scheduler,
  TIMERS,
  type Timers,
  type Token,
  XRC,
  type XrcModule,
} from '../spi/index.js';

/** Services that every device has. */
export const TAKEN: readonly Token<unknown>[] = [
  CLOCK,
  TIMERS,
  RANDOM,
  SCHEDULER,
  PROCESS_HOLD,
  DEVICE,
  CM,
];
/** Services that core takes if they are bound. */
export const IF_BOUND: readonly Token<unknown>[] = [MAD, XRC];

@injectable()
export class DeviceServices {
  constructor(
    @inject(DEVICE) readonly device: Device,
    @inject(CM) readonly cm: CmModule,
    @inject(CLOCK) readonly clock: Clock,
    @inject(TIMERS) readonly timers: Timers,
    @inject(RANDOM) readonly random: Random,
    @inject(SCHEDULER) readonly scheduler: Scheduler,
    @inject(PROCESS_HOLD) readonly processHold: ProcessHold,
    @inject(LOGGER) readonly logger: Logger,
    @inject(XRC, { isOptional: true }) readonly xrc: XrcModule | undefined,
  ) {}
}
