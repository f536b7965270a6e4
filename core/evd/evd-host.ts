/** The part of the interface adapter that an EVD needs. */
import type {
  Clock,
  Device,
  DeviceAttributes,
  Logger,
  PollingMode,
  ProcessHold,
  Scheduler,
  Timers,
} from '../spi/index.js';
import type { Cno } from './cno/cno.js';
import type { CompletionOwners } from './queue/completion-owner.js';
import type { AsyncErrorEvent } from './events/event.js';
import type { NotifyHandler, Upcall, UpcallHandler } from './upcall/upcall.js';
import type { PendingChoice, UpcallPolicy } from './upcall/policy.js';

/** The part of a device that an EVD uses. */
export interface EvdDevice extends Pick<Device, 'createCompletionQueue' | 'progress'> {
  readonly attributes: Pick<DeviceAttributes, 'maxCompletionQueueEntries' | 'reportsSolicited'>;
}

export interface EvdHost extends CnoHost {
  readonly device: EvdDevice;
  readonly owners: CompletionOwners;
  /** Puts an event on the IA's asynchronous EVD. */
  reportAsync(event: AsyncErrorEvent): void;
  /** An EVD of this host has been freed: drops the reference to it. */
  onEvdFreed(evd: object): void;
}

/** Policy and handler at creation; both may be set later (`modifyUpcall`). */
type UpcallAtCreation =
  | {
      readonly policy?: Exclude<UpcallPolicy, 'NOTIFY'>;
      readonly handler?: UpcallHandler;
    }
  | {
      readonly policy: 'NOTIFY';
      readonly handler: NotifyHandler;
    };

/** Options of a new EVD. */
export type EvdCreateOptions = UpcallAtCreation & {
  /** Events that the software queue holds, and completions that the CQ holds at least. */
  readonly qlen: number;
  /** Bit set of EvdFlags; default EvdFlags.DEFAULT. */
  readonly streams?: number;
  /** Upcalls at a time under MANY; default 16. */
  readonly limit?: number;
  /** Default 'event'. */
  readonly polling?: PollingMode;
  /** CNO to notify of new events without a consumer; see `evd.modifyCno`. */
  readonly cno?: Cno | null;
};

export type EvdOptions = EvdCreateOptions & {
  /** Number for traces. */
  readonly id: number;
};

export interface ModifyUpcallOptions {
  /** ONE, NOTIFY, MANY: handling of queued events; default 'deliver'. */
  readonly pending?: PendingChoice;
  /** MANY: upcalls at a time, 1 to 65536; default 16. */
  readonly limit?: number;
  /**
   * TEARDOWN: the calling upcall, which is not waited for. Default: the upcall whose handler makes
   * the call, or awaits the code that does. Name it if a callback stands between the two.
   */
  readonly upcall?: Upcall;
}

export interface WaitOptions {
  /** Events that must be queued before the call returns: 1 (default) to qlen. */
  readonly threshold?: number;
  /** Milliseconds; 0 only looks. Default: no limit. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface WaitResult<E> {
  readonly event: E;
  /** Events queued behind it. */
  readonly nmore: number;
}

// The part of the interface adapter that a CNO needs.

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
