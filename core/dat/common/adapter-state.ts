/**
 * The state that all objects of an interface adapter share: the device's services, the open
 * objects, the guards of a call, and the asynchronous EVD.
 */
import {
  type AsyncErrorEvent,
  type Cno,
  CompletionOwners,
  Counters,
  DatEventNumber,
  Evd,
  EvdFlags,
  type EvdHost,
  unhandled,
} from '../../evd/index.js';
import { DatError } from '../../errors/index.js';
import { FlightLog, Slab } from '../../spi/internal/index.js';
import { nextHandleId } from './handle.js';
import { checkEvd, type EvdUse } from './private-evd.js';
import type { TraceFields } from './trace.js';
import type { Ia } from '../ia/ia.js';
import type { DeviceServices, TeardownStep } from '../../di/index.js';
import type { AsyncEventType, MadModule } from '../../spi/index.js';

/** An object that is ended with its adapter at the latest. */
export interface IaChild {
  /** DAT_HANDLE_TYPE, under which it is counted. */
  readonly handleType: string;
}

export class AdapterState {
  readonly owners = new CompletionOwners();
  readonly children = new Set<IaChild>();
  readonly evds = new Set<Evd>();
  readonly cnos = new Set<Cno>();
  readonly counts = new IaCounters();
  /** Counters of all its endpoints. */
  readonly slab = new Slab();
  /** Flight records of its objects. */
  readonly flights = new FlightLog();
  /** The view that event dispatchers and notification objects have of the adapter. */
  readonly evdHost: EvdHost;
  /** Takes asynchronous errors, of all objects of this adapter. */
  readonly asyncEvd: Evd;
  /** Run when a close begins, before anything is ended. */
  readonly closers = new Set<() => void>();
  /** A close has begun: no call creates anything any more. */
  isClosing = false;

  constructor(
    readonly ia: Ia,
    readonly context: AdapterServices,
    asyncEvdQlen: number,
  ) {
    this.evdHost = {
      ...context,
      owners: this.owners,
      reportAsync: (event) => this.reportAsync(event),
      reportFailure: (event) => this.reportFailure(event),
      onEvdFreed: (evd) => {
        this.evds.delete(evd as Evd);
        this.counts.count('evdFree');
      },
      onCnoFreed: (cno) => {
        this.cnos.delete(cno as Cno);
        this.counts.count('cnoFree');
      },
    };
    this.asyncEvd = this.newEvd(asyncEvdQlen, EvdFlags.ASYNC);
  }

  /**
   * Starts every call of the adapter: traces it, and checks that the adapter is open.
   * @returns the call
   * @throws DatError DAT_INVALID_HANDLE
   */
  begin(call: string, fields: TraceFields = {}): string {
    this.context.trace?.(call, { ia: this.ia.id, ...fields });
    this.assertOpen(call);
    return call;
  }

  /** @throws DatError DAT_INVALID_HANDLE */
  assertOpen(operation: string): void {
    this.ia.assertLive(operation);
    if (!this.isClosing) return;
    throw new DatError('DAT_INVALID_HANDLE', {
      subtype: 'DAT_INVALID_HANDLE_IA',
      operation,
      message: `interface adapter ${this.ia.id} is being closed`,
      value: this.ia,
    });
  }

  adopt<T extends IaChild>(child: T): T {
    this.children.add(child);
    this.counts.object(child.handleType, 'Create');
    return child;
  }

  /** The object has been freed. */
  forget(child: IaChild): void {
    if (this.children.delete(child)) this.counts.object(child.handleType, 'Free');
  }

  /** Creates a private event dispatcher. */
  newEvd(qlen: number, streams: number): Evd {
    return this.adoptEvd(new Evd(this.evdHost, { id: nextHandleId(), qlen, streams }));
  }

  adoptEvd(evd: Evd): Evd {
    this.evds.add(evd);
    this.counts.count('evdCreate');
    return evd;
  }

  adoptCno(cno: Cno): Cno {
    this.cnos.add(cno);
    this.counts.count('cnoCreate');
    return cno;
  }

  /** Frees it, unless the consumer has put it to another use: then the consumer frees it. */
  freePrivateEvd(evd: Evd): void {
    if (evd.feed.isInUse || !this.evds.delete(evd)) return;
    evd.free().catch((error: unknown) => {
      this.context.logger.error(`private event dispatcher ${evd.id}`, { error: String(error) });
    });
  }

  /** @throws DatError DAT_INVALID_HANDLE unless absent, or ours and takes the stream */
  checkEvdOption(operation: string, use: EvdUse, evd: Evd | undefined): void {
    if (evd !== undefined) checkEvd(operation, use, evd, this.evds);
  }

  /** Queues an asynchronous error; false when there is no room for it. */
  reportAsync(event: AsyncErrorEvent): boolean {
    this.counts.count('asyncError');
    if (event.number === DatEventNumber.ASYNC_EP_BROKEN) this.counts.count('asyncEpBroken');
    if (event.number === DatEventNumber.ASYNC_EVD_OVERFLOW) this.counts.count('asyncEvdOverflow');
    return this.asyncEvd.feed.post(event);
  }

  /** Reports a failed consumer callback; as an unhandled error if nobody reads async events. */
  reportFailure(event: AsyncErrorEvent): void {
    const isHeeded = this.asyncEvd.feed.isHeeded;
    if (!this.reportAsync(event) || !isHeeded) unhandled(event.cause);
  }

  /** Scans every completion queue, so that finished requests release their memory. */
  takeInCompletions(): void {
    for (const evd of [...this.evds]) evd.feed.scan();
  }
}

// Counters of an interface adapter: those of DAT_IA_COUNTERS that have an event here.

/** Objects whose creation and freeing are counted. */
const KINDS = ['pz', 'lmr', 'rmr', 'srq', 'evd', 'cno', 'ep', 'psp', 'rsp', 'csp'] as const;
type Kind = (typeof KINDS)[number];

const OTHERS = [
  /** Connection requests, and how they were answered. */
  'cr',
  'crAccepted',
  'crRejected',
  /** Memory that the adapter has allocated: calls, and bytes. */
  'memoryAllocate',
  'memoryAllocateData',
  /** Events on the asynchronous EVD; of these, broken endpoints and overflows. */
  'asyncError',
  'asyncEpBroken',
  'asyncEvdOverflow',
] as const;

type CounterName = `${Kind}Create` | `${Kind}Free` | (typeof OTHERS)[number];
/** Counts, exact up to 2^53. Those named Data are bytes. */
export type IaCounterValues = Readonly<Record<CounterName, number>>;

const NAMES: readonly CounterName[] = [
  ...KINDS.flatMap((kind): CounterName[] => [`${kind}Create`, `${kind}Free`]),
  ...OTHERS,
];

export class IaCounters extends Counters<CounterName> {
  constructor() {
    super(NAMES);
  }

  /** Counts an object of that kind (DAT_HANDLE_TYPE in any case), created or freed. */
  object(handleType: string, what: 'Create' | 'Free'): void {
    const kind = KINDS.find((known) => known === handleType.toLowerCase());
    if (kind !== undefined) this.count(`${kind}${what}`);
  }

  /** Counts allocated memory. */
  allocated(lengthBytes: number): void {
    this.count('memoryAllocate');
    this.bump(NAMES.indexOf('memoryAllocateData'), lengthBytes);
  }
}

// Services that the objects of an interface adapter share, and its hold on the device.

export interface AdapterServices extends DeviceServices {
  /**
   * Writes the one line of a traced call; absent unless debug was enabled when the IA was opened.
   */
  readonly trace: ((call: string, fields: TraceFields) => void) | undefined;
  /** Bytes of the largest region: the device's limit, and that of a view of memory. */
  readonly maxRegionBytes: number;
}

/** An open device, held by one interface adapter. */
export interface DeviceLease {
  /** Receives events of the device and its port; every interface adapter on it gets them. */
  onEvent(listener: (event: AsyncEventType) => void): void;
  /** The device's MAD module, if it has one. */
  mad(): MadModule | undefined;
  /**
   * Gives the device back, once. The last holder gets the teardown steps: the modules before the
   * queue pairs, the device last; call `done` when they have run.
   */
  release(): DeviceRelease;
}

export interface DeviceRelease {
  readonly modules: readonly TeardownStep[];
  readonly device: readonly TeardownStep[];
  done(): void;
}
