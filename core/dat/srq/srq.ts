/**
 * Shared receive queue (dat_srq): receives that any of its endpoints may take. Their completions
 * come on the receive EVD of the endpoint that took them. When an endpoint ends, its queue's
 * receives stay for the others: they are not flushed.
 */
import { DatError, spiCall, toDatError } from '../../errors/index.js';
import { AsyncErrorReason, type CompletionOwner, DatEventNumber } from '../../evd/index.js';
import {
  AsyncEventType,
  CQE,
  nameOf,
  type SharedReceiveQueue,
  type SharedReceiveQueueInit,
} from '../../spi/index.js';
import { MemPrivileges } from '../common/constants.js';
import { checkInteger, checkOptions, checkValue } from '../../errors/guards.js';
import { type Facts, FUNCTION, showAs, Symbolic } from '../../spi/checks/index.js';
import {
  begin,
  type Callee,
  checkHandle,
  endedError,
  HANDLE,
  nextHandleId,
} from '../common/handle.js';
import type { AdapterState } from '../common/adapter-state.js';
import { notSupported, OUT_OF } from '../common/unsupported.js';
import { burst, checkCookie, checkSegments, countOf, makeRoom } from '../work/post-checks.js';
import { Pz } from '../memory/pz.js';
import type { Segments } from '../memory/segment.js';
import {
  SRQ_STATES,
  type SrqAttributes,
  srqAttributes,
  type SrqOptions,
  type SrqStateName,
} from './attributes.js';
import { SrqSlots } from './slots.js';
import type { Ia } from '../ia/ia.js';

/** Result of `srq.query()` (DAT_SRQ_PARAM). */
export interface SrqParameters extends SrqAttributes {
  readonly ia: Ia;
  readonly pz: Pz;
  readonly state: SrqStateName;
  /** The armed limit; 0 without one. */
  readonly lowWatermark: number;
  /**
   * Receives that no endpoint has taken yet; undefined when the provider cannot tell
   * (DAT_VALUE_UNKNOWN).
   */
  readonly availableDtos: number | undefined;
  /** Receives posted whose completions have not been scanned. */
  readonly outstandingDtos: number;
  /** Endpoints that receive from it. */
  readonly endpoints: number;
}

/** Creates the provider's queue; its events go to the handler. */
export type CreateSharedReceiveQueue = (
  onEvent: (event: AsyncEventType) => void,
) => SharedReceiveQueue;

/** Made by `ia.createSrq()`. */
export class Srq implements Callee {
  static {
    showAs(this, 'Srq', (srq) => srq.facts());
  }

  readonly handleType = 'SRQ';
  readonly id = nextHandleId();
  consumerContext: unknown = undefined;
  /** @internal endpoints that receive from it */
  users = 0;
  /** @internal */
  readonly queue: SharedReceiveQueue;
  /** @internal */
  readonly slots: SrqSlots;
  readonly maxRecvIov: number;
  private current: SrqStateName = 'OPERATIONAL';
  /** @internal */
  freedBy: string | undefined = undefined;
  private armed = 0;
  /** Completions of freed endpoints: they are hidden, but their slots are free again. */
  private readonly strays: CompletionOwner = {
    onCompletion: (words, at) => {
      this.slots.reclaim(words[at + CQE.WQE_INDEX] ?? 0);
      return false;
    },
    toEvent: () => {
      throw new Error('a completion that is hidden is not taken');
    },
  };

  /** @internal */
  constructor(
    /** @internal */
    readonly core: AdapterState,
    readonly pz: Pz,
    attributes: SrqAttributes,
    create: CreateSharedReceiveQueue,
  ) {
    const { maxRecvDtos, maxRecvIov } = attributes;
    this.maxRecvIov = maxRecvIov;
    this.queue = create((event) => this.onEvent(event));
    this.slots = new SrqSlots(this.queue, maxRecvIov, maxRecvDtos);
    pz.users++;
    core.owners.addShared(this.queue.srqn, this.strays);
  }

  get [HANDLE](): 'SRQ' {
    return this.handleType;
  }

  get isFreed(): boolean {
    return this.freedBy !== undefined;
  }

  get ia(): Ia {
    return this.core.ia;
  }

  /** @internal fields that it shows */
  facts(): Facts {
    const { id, state, slots, users: endpoints, isFreed: freed } = this;
    const receives = new Symbolic(`${slots.outstanding}/${slots.limit}`);
    return { id, state, receives, endpoints, freed };
  }

  /** DAT_SRQ_STATE. */
  get state(): SrqStateName {
    return this.current;
  }

  /** Receives that may be outstanding. */
  get maxRecvDtos(): number {
    return this.slots.limit;
  }

  /**
   * Posts a receive for any endpoint of the queue (dat_srq_post_recv). The event is on the receive
   * EVD of the endpoint that took it.
   * @param segments where the message goes, scattered in order; of the queue's zone, LOCAL_WRITE
   * @param cookie comes back in the event: an integer from 0 to 2^53 - 1
   * @throws DatError DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_CREDITS when `maxRecvDtos` receives
   * are outstanding; DAT_INVALID_STATE / DAT_INVALID_STATE_SRQ_ERROR; DAT_PROTECTION_VIOLATION,
   * DAT_PRIVILEGES_VIOLATION, DAT_INVALID_HANDLE (freed region), DAT_INVALID_PARAMETER
   */
  postRecv(segments: Segments, cookie = 0): void {
    const operation = 'srq.postRecv';
    this.core.context.trace?.(operation, {
      srq: this.id,
      segments: countOf(segments),
      cookie,
    });
    this.assertUsable(operation);
    checkCookie(operation, cookie);
    const { pz, maxRecvIov, slots } = this;
    checkSegments(operation, segments, pz, MemPrivileges.LOCAL_WRITE, maxRecvIov, Infinity);
    if (slots.full) makeRoom(operation, this.core, slots, slots.limit, 'receives', FULL_HINT);
    slots.put(segments, cookie);
    slots.kick(operation);
  }

  /**
   * Posts everything that `work` posts on this queue with one doorbell, also when `work` throws.
   * Bursts nest; the outermost rings.
   * @throws DatError when the provider refuses some: `value` is how many of the last ones, which
   * are then not posted
   */
  burst(work: () => void): void {
    this.assertUsable('srq.burst');
    checkValue('srq.burst', 'work', work, FUNCTION);
    burst('srq.burst', this.slots, work);
  }

  /** Parameters and counts (dat_srq_query), after a scan of completions. */
  query(): SrqParameters {
    begin(this, 'srq.query');
    this.core.takeInCompletions();
    const { ia, pz, state, maxRecvDtos, maxRecvIov, armed, slots, users } = this;
    return {
      ia,
      pz,
      state,
      maxRecvDtos,
      maxRecvIov,
      lowWatermark: armed,
      availableDtos: this.queue.available,
      outstandingDtos: slots.outstanding,
      endpoints: users,
    };
  }

  /**
   * Changes how many receives may be outstanding (dat_srq_resize); posted ones are kept.
   * @param maxRecvDtos 1 to `maxRecvPerSrq`
   * @throws DatError DAT_INVALID_STATE / DAT_INVALID_STATE_SRQ_IN_USE below what is outstanding or
   * below an armed low watermark; DAT_INVALID_PARAMETER; DAT_INSUFFICIENT_RESOURCES
   */
  resize(maxRecvDtos: number): void {
    const operation = begin(this, 'srq.resize', { maxRecvDtos });
    this.assertUsable(operation);
    const { slots } = this;
    const most = this.core.context.device.attributes.maxSharedReceiveQueueWr;
    checkInteger(operation, 'maxRecvDtos', maxRecvDtos, 1, most);
    if (maxRecvDtos < slots.outstanding) this.core.takeInCompletions();
    this.checkNotBelow(operation, maxRecvDtos, slots.outstanding, 'receives are outstanding');
    this.checkNotBelow(operation, maxRecvDtos, this.armed, 'is the low watermark');
    const map = OUT_OF.sharedReceives;
    spiCall({ operation, value: maxRecvDtos, map }, () => this.queue.resize(maxRecvDtos));
    slots.limit = maxRecvDtos;
    slots.grow();
  }

  /**
   * Arms the low watermark (dat_srq_set_lw). When fewer than that many receives are left that no
   * endpoint has taken, an asynchronous event names this queue, once, with the reason
   * `AsyncErrorReason.SRQ.LOW_WATERMARK`. If fewer are left already, it comes soon. Arm it again
   * for the next event.
   * @param lowWatermark 0 (disarms) to `maxRecvDtos`
   * @throws DatError DAT_INVALID_PARAMETER; DAT_INVALID_STATE / DAT_INVALID_STATE_SRQ_ERROR
   */
  setLowWatermark(lowWatermark: number): void {
    const operation = begin(this, 'srq.setLowWatermark', { lowWatermark });
    this.assertUsable(operation);
    checkInteger(operation, 'lowWatermark', lowWatermark, 0, this.maxRecvDtos);
    const before = this.armed;
    // The provider may find it reached immediately; its event runs later.
    this.armed = lowWatermark;
    try {
      this.queue.setLimit(lowWatermark);
    } catch (error) {
      this.armed = before;
      throw toDatError(error, { operation, value: lowWatermark });
    }
  }

  /**
   * Frees the queue (dat_srq_free). The consumer gets back the memory of its remaining receives.
   * @throws DatError DAT_INVALID_STATE / DAT_INVALID_STATE_SRQ_IN_USE while endpoints receive from
   * it
   */
  free(): void {
    const operation = begin(this, 'srq.free');
    if (this.users > 0) {
      throw new DatError('DAT_INVALID_STATE', {
        subtype: 'DAT_INVALID_STATE_SRQ_IN_USE',
        operation,
        message: `${this.users} endpoints receive from shared receive queue ${this.id}`,
        hint: 'free them first',
        value: this.users,
      });
    }
    this.destroy(operation);
  }

  [Symbol.dispose](): void {
    if (!this.isFreed) this.free();
  }

  /** @internal teardown: no endpoint can be created on it any more */
  shutdown(): void {
    this.current = 'SHUTDOWN';
  }

  /** @internal */
  destroy(by: string): void {
    spiCall({ operation: by }, () => this.queue.destroy());
    this.freedBy = by;
    this.core.owners.removeShared(this.queue.srqn);
    this.slots.discard();
    this.pz.users--;
    this.core.forget(this);
  }

  /** @throws DatError DAT_INVALID_HANDLE_SRQ, or DAT_INVALID_STATE_SRQ_ERROR and _SHUTDOWN */
  assertUsable(operation: string): void {
    if (this.freedBy !== undefined) throw endedError(this, this.freedBy, operation);
    const { subtype, usable } = SRQ_STATES[this.current];
    if (usable) return;
    throw new DatError('DAT_INVALID_STATE', {
      subtype,
      operation,
      message: `shared receive queue ${this.id} is ${this.current}`,
      hint: 'free it, and its endpoints',
      value: this.current,
    });
  }

  private onEvent(event: AsyncEventType): void {
    if (this.isFreed) return;
    if (event === AsyncEventType.SRQ_LIMIT_REACHED) {
      const left = this.armed;
      this.armed = 0;
      this.report(AsyncErrorReason.SRQ.LOW_WATERMARK, `fewer than ${left} receives are left`);
    } else if (event === AsyncEventType.SRQ_ERR) {
      this.current = 'ERROR';
      this.report(AsyncErrorReason.SRQ.TRANSFER_TO_ERROR, 'the device has failed the queue');
    } else {
      this.report(AsyncErrorReason.SRQ.OTHER, nameOf(AsyncEventType, event));
    }
  }

  private report(reason: number, what: string): void {
    this.core.reportAsync({
      type: 'async-error',
      number: DatEventNumber.ASYNC_PROVIDER_INTERNAL_ERROR,
      object: this,
      reason,
      message: `shared receive queue ${this.id}: ${what}`,
    });
  }

  private checkNotBelow(operation: string, value: number, bound: number, what: string): void {
    if (value >= bound) return;
    throw new DatError('DAT_INVALID_STATE', {
      subtype: 'DAT_INVALID_STATE_SRQ_IN_USE',
      operation,
      message: `maxRecvDtos ${value} is too small: ${bound} ${what}`,
      value,
    });
  }
}

const FULL_HINT = 'wait for completions, or srq.resize()';

export function createSrq(core: AdapterState, options: SrqOptions): Srq {
  const operation = core.begin('ia.createSrq', { maxRecvDtos: options?.maxRecvDtos });
  const { device } = core.context;
  checkOptions(operation, options, ['pz', 'maxRecvDtos', 'maxRecvIov', 'lowWatermark']);
  checkHandle(operation, Pz, 'PZ', options.pz, core);
  if (device.createSharedReceiveQueue === undefined) {
    const hint = 'give each endpoint receives of its own: ep.postRecv()';
    throw notSupported(operation, 'this provider has no shared receive queues', hint);
  }
  const attributes = srqAttributes(operation, options, device.attributes);
  const make = device.createSharedReceiveQueue.bind(device);
  const create = makerOfQueue(operation, options.pz, attributes, make);
  return core.adopt(new Srq(core, options.pz, attributes, create));
}

/** Creates the provider's queue with those attributes. */
export function makerOfQueue(
  operation: string,
  { pd }: Pz,
  { maxRecvDtos: maxWr, maxRecvIov: maxSge }: SrqAttributes,
  make: (init: SharedReceiveQueueInit) => SharedReceiveQueue,
): CreateSharedReceiveQueue {
  const context = { operation, value: maxWr, map: OUT_OF.sharedReceives };
  return (onEvent) => spiCall(context, () => make({ pd, maxWr, maxSge, onEvent }));
}
