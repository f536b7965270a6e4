/** The part of the interface adapter that a CNO needs. */
import type { Clock, Logger, ProcessHold, Scheduler, Timers } from '../../spi/index.js';
import type { AsyncErrorEvent } from '../events/event.js';

export interface CnoHost {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly scheduler: Scheduler;
  readonly processHold: ProcessHold;
  readonly logger: Logger;
  /**
   * Reports an error of the consumer's own code (`event.cause`) on the IA's asynchronous EVD; as an
   * unhandled error when nothing listens there.
   */
  reportFailure(event: AsyncErrorEvent): void;
  /** A CNO of this host has been freed: drops the reference to it. */
  onCnoFreed(cno: object): void;
}
