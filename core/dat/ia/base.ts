/**
 * What every call of an interface adapter stands on: its objects, its event dispatchers, and the
 * guards of a call. The calls themselves are in ia-memory, ia-endpoints and ia-service-points.
 */
import {
  Cno,
  type CnoOptions,
  CompletionOwners,
  type AsyncErrorEvent,
  type DatEvent,
  DatEventNumber,
  Evd,
  type EvdCreateOptions,
  EvdFlags,
  type EvdHost,
  unhandled,
} from '../../evd/index.js';
import { DatError } from '../../errors/index.js';
import { AsyncEventType, FlightLog, Slab } from '../../spi/index.js';
import type { Observable } from '../../stream/index.js';
import { reportDeviceEvent } from '../common/async-events.js';
import type { DeviceLease, IaContext } from '../common/context.js';
import { checkOptions, checkReset } from '../common/guards.js';
import { DatHandle, nextHandleId } from '../common/handle.js';
import type { Ia } from './ia.js';
import { addressOf } from './attributes.js';
import type { Child } from './close.js';
import { IaCounters, type IaCounterValues } from './counters.js';
import { checkEvd, type EvdUse, streamOf } from '../common/private-evd.js';
import { RmrContexts } from '../memory/rmr-contexts.js';

/** @internal how an IA is made */
export interface IaInit {
  readonly context: IaContext;
  readonly lease: DeviceLease;
  readonly providerName: string;
  readonly asyncEvdQlen: number;
  readonly closeTimeoutMs: number;
}

export abstract class IaBase extends DatHandle {
  readonly handleType = 'IA';
  /** @internal */
  readonly context: IaContext;
  /** @internal */
  readonly owners = new CompletionOwners();
  /** @internal what the remote contexts of this adapter open */
  readonly rmrContexts = new RmrContexts();
  /** Takes asynchronous errors, of all objects of this adapter. */
  readonly asyncEvd: Evd;
  /** Address of the default source, as text. */
  readonly address: string;
  protected readonly children = new Set<Child>();
  protected readonly evds = new Set<Evd>();
  protected readonly cnos = new Set<Cno>();
  /** @internal */
  readonly counts = new IaCounters();
  protected closing: Promise<void> | undefined = undefined;
  /** Until then the asynchronous EVD cannot be freed. */
  protected readonly leaveAsyncEvd: () => void;
  /** @internal where its endpoints count */
  readonly slab = new Slab();
  /** @internal where they note what people may want to know */
  readonly flights = new FlightLog();
  private readonly host: EvdHost;

  /** @internal */
  constructor(protected readonly init: IaInit) {
    super();
    this.context = init.context;
    this.address = addressOf(init.context.device);
    this.host = {
      ...init.context,
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
    this.asyncEvd = this.newEvd(init.asyncEvdQlen, EvdFlags.ASYNC);
    this.leaveAsyncEvd = this.asyncEvd.attach();
    init.lease.onEvent((event) => this.onDeviceEvent(event));
  }

  /** Every connection of a device that has gone is broken, each told once (DAT facts 3.5). */
  private onDeviceEvent(event: AsyncEventType): void {
    reportDeviceEvent(event, this.self);
    if (event !== AsyncEventType.DEVICE_FATAL) return;
    for (const child of [...this.children]) {
      if (isConnected(child)) child.onDeviceGone('the device is gone');
    }
  }

  /** This adapter, as its objects know it. */
  protected abstract get self(): Ia;

  /** Asynchronous errors. One subscriber. */
  get async$(): Observable<DatEvent> {
    return streamOf('ia.async$', this.asyncEvd, true);
  }

  /**
   * Makes an event dispatcher (dat_evd_create).
   * @throws DatError DAT_INVALID_PARAMETER; DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_TEVD
   */
  createEvd(options: EvdCreateOptions): Evd {
    this.begin('ia.createEvd', { qlen: options?.qlen });
    const evd = new Evd(this.host, { ...options, id: nextHandleId() });
    this.evds.add(evd);
    this.counts.count('evdCreate');
    return evd;
  }

  /**
   * Makes a notification object (dat_cno_create), for many EVDs to be waited for in one place.
   * @throws DatError DAT_INVALID_PARAMETER
   */
  createCno(options: CnoOptions = {}): Cno {
    this.begin('ia.createCno', {});
    checkOptions('ia.createCno', 2, options, ['agent']);
    const cno = new Cno(this.host, { ...options, id: nextHandleId() });
    this.cnos.add(cno);
    this.counts.count('cnoCreate');
    return cno;
  }

  /**
   * What the adapter has made, freed, answered and reported (dat_ib_query_counters on an IA).
   * @param options `reset`: the counters begin again at 0; what was counted is returned
   * @throws DatError DAT_INVALID_PARAMETER
   */
  counters(options: { readonly reset?: boolean } = {}): IaCounterValues {
    const operation = 'ia.counters';
    this.begin(operation, { reset: options?.reset });
    return this.counts.read(checkReset(operation, options));
  }

  /**
   * What the device and its port have counted: packets, retries, receivers that were not ready,
   * what was dropped and why. docs/softroce.md names all of softroce and mock; over verbs they are
   * those of sysfs, `counters` and `hw_counters` of the port, where others on the machine count,
   * too. Empty where nothing is counted. Beyond DAT, whose dat_ib_start_counter samples sysfs.
   * @throws DatError DAT_INVALID_HANDLE
   */
  deviceCounters(): Readonly<Record<string, number>> {
    this.begin('ia.deviceCounters');
    return this.context.device.readCounters?.() ?? {};
  }

  /** @internal queues an asynchronous error */
  reportAsync(event: AsyncErrorEvent): boolean {
    this.counts.count('asyncError');
    if (event.number === DatEventNumber.ASYNC_EP_BROKEN) this.counts.count('asyncEpBroken');
    if (event.number === DatEventNumber.ASYNC_EVD_OVERFLOW) this.counts.count('asyncEvdOverflow');
    return this.asyncEvd.post(event);
  }

  /** @internal a function of the consumer's has failed: to be heard of, one way or the other */
  reportFailure(event: AsyncErrorEvent): void {
    const isHeeded = this.asyncEvd.isHeeded;
    if (!this.reportAsync(event) || !isHeeded) unhandled(event.cause);
  }

  /** @internal an object has been freed */
  forget(child: Child): void {
    if (this.children.delete(child)) this.counts.object(child.handleType, 'Free');
  }

  /** @internal looks at every completion queue, so that finished requests let go of their memory */
  takeInCompletions(): void {
    for (const evd of [...this.evds]) evd.scan();
  }

  /** @internal unless the consumer has put it to another use: then it is the consumer's to free */
  freePrivateEvd(evd: Evd): void {
    if (evd.isInUse || !this.evds.delete(evd)) return;
    evd.free().catch((error: unknown) => {
      this.context.logger.error(`private event dispatcher ${evd.id}`, { error: String(error) });
    });
  }

  /** Every call starts here: it is traced, and the adapter is open. */
  protected begin(call: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.context.trace?.(call, { ia: this.id, ...fields });
    this.assertOpen(call);
  }

  protected assertOpen(operation: string): void {
    this.assertLive(operation);
    if (this.closing === undefined) return;
    throw new DatError('DAT_INVALID_HANDLE', {
      subtype: 'DAT_INVALID_HANDLE_IA',
      operation,
      message: `interface adapter ${this.id} is being closed`,
      value: this,
    });
  }

  /** The object ends with the adapter, at the latest. */
  protected adopt<T extends Child>(child: T): T {
    this.children.add(child);
    this.counts.object(child.handleType, 'Create');
    return child;
  }

  protected newEvd(qlen: number, streams: number): Evd {
    const evd = new Evd(this.host, { id: nextHandleId(), qlen, streams });
    this.evds.add(evd);
    this.counts.count('evdCreate');
    return evd;
  }

  /** @internal @throws DatError DAT_INVALID_HANDLE unless absent, or ours and takes the stream */
  checkEvdOption(operation: string, use: EvdUse, evd: Evd | undefined): void {
    if (evd !== undefined) checkEvd(operation, use, evd, this.evds);
  }
}

/** Endpoints, that is. Their classes need this one, so that they cannot be named here. */
function isConnected(child: Child): child is Child & { onDeviceGone(reason: string): void } {
  return 'onDeviceGone' in child;
}
