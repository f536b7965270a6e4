/** Observes a device's work requests and completions, and makes single requests fail. */
import { checkOptions, checkValue, FUNCTION, kindOf, optional } from '../checks/index.js';
import { refusing } from '../errors/consumer-errors.js';
import type { ConfiguredProvider } from '../plugin/define-plugin.js';
import type { Device, QueuePair, QueuePairInit, SharedReceiveQueue } from '../device/device.js';
import { type AsyncEventType, type QpState, WcStatus } from '../wire/ib.js';
import { COMPLETED_AS } from '../wire/request-opcodes.js';
import { CQE, type Ring, SQE } from '../layout/ring.js';
import type { Clock } from '../time/clock.js';
import { decorate, type DecoratorContext, type DecorateOptions } from './decorate.js';
import {
  type CompletedOpcode,
  completionAt,
  indices,
  type ObservedCompletion,
  type PostedRequest,
  receiveAt,
  REFUSED,
  sendAt,
} from './entries.js';
import type { Over } from './over.js';
import {
  type CompletionQueueTap,
  type QueuePairTap,
  type SharedReceiveQueueTap,
  SILENT_TAP,
  tapDevice,
} from './tapped-device.js';

/** All members are called from inside calls of the device's consumer: they must not call back. */
export interface Observer {
  posted?(request: PostedRequest): void;
  /**
   * Called for each send request. With a status other than SUCCESS, the request completes with
   * that, unsent, and its queue pair goes to error, as when a device refuses a request. Earlier
   * requests complete first; those that a driver still has may be flushed.
   */
  fail?(request: PostedRequest): WcStatus | undefined;
  completed?(completion: ObservedCompletion): void;
  /** `modify` has changed the state of a queue pair. */
  changed?(qpn: number, state: QpState): void;
  /** An asynchronous event of a queue pair. */
  event?(qpn: number, event: AsyncEventType): void;
}

export interface ObserverContext extends DecoratorContext {
  /** The object without the observer. */
  readonly device: Device;
}

/** Creates the observer of a device when that opens. */
export type ObserverFactory = (context: ObserverContext) => Observer;

const OBSERVER = kindOf<Observer | ObserverFactory>(
  'an observer, or a function that makes one for a device',
  (value) => typeof value === 'function' || (typeof value === 'object' && value !== null),
);
const METHODS = {
  posted: optional(FUNCTION),
  fail: optional(FUNCTION),
  completed: optional(FUNCTION),
  changed: optional(FUNCTION),
  event: optional(FUNCTION),
};

/**
 * The provider with an observer of its device. It sees each work request that is handed over and
 * each completion that is read, including those of queue pair 1 (management datagrams).
 * @throws DatError DAT_INVALID_PARAMETER for what is no observer
 */
export function observe(
  provider: ConfiguredProvider,
  observer: Observer | ObserverFactory,
  { name = 'observer' }: DecorateOptions = {},
): ConfiguredProvider {
  const refuse = refusing('observe');
  checkValue('the observer', observer, OBSERVER, refuse);
  if (typeof observer !== 'function') checkOptions<object>(observer, METHODS, refuse);
  const device = (inner: Device, context: DecoratorContext): Over<Device> =>
    observedDevice(
      inner,
      context.clock,
      typeof observer === 'function' ? observer({ ...context, device: inner }) : observer,
    );
  return decorate(provider, { device }, { name });
}

/** Overrides for the members of an observed device. */
export function observedDevice(device: Device, clock: Clock, observer: Observer): Over<Device> {
  const watch = new Watch(clock, observer);
  return tapDevice(device, {
    ...SILENT_TAP,
    queuePair: (qp, init) => watch.queuePair(qp, init),
    completionQueue: () => watch.completionQueue(),
    sharedReceiveQueue: (srq) => watch.sharedReceives(srq),
  });
}

/** A queue's requests. */
interface Watched {
  /** Time of each doorbell, by place in the ring. */
  readonly postedUs: Map<number, number>;
  /** Opcodes of sends, by place: on a failure the device may report another one. */
  readonly opcodes: Map<number, number>;
  /** Mask of places in the ring. */
  readonly mask: number;
  /** Requests that must fail, by index. */
  readonly failing: Map<number, WcStatus>;
}

function watched(mask: number): Watched {
  return { postedUs: new Map(), opcodes: new Map(), mask, failing: new Map() };
}

class Watch {
  private readonly sends = new Map<number, Watched>();
  private readonly receives = new Map<number, Watched>();
  /** By queue, and by its number if it has one: XRC targets use that. */
  private readonly shared = new WeakMap<SharedReceiveQueue, Watched>();
  private readonly numbered = new Map<number, Watched>();

  constructor(
    private readonly clock: Clock,
    private readonly observer: Observer,
  ) {}

  queuePair(qp: QueuePair, { srq }: QueuePairInit): QueuePairTap {
    const { observer } = this;
    const { qpn, sendRing, receiveRing } = qp;
    const sends = watched(sendRing.mask);
    const receives = (srq && this.shared.get(srq)) ?? watched(receiveRing?.mask ?? 0);
    this.sends.set(qpn, sends);
    this.receives.set(qpn, receives);
    return {
      sends: (from, to) => {
        for (const index of indices(from, to)) this.send(qp, sends, index);
      },
      receives: (from, to) => {
        if (receiveRing === undefined) return;
        for (const index of indices(from, to)) {
          this.posted(receives, receiveAt({ qpn, srqn: 0 }, receiveRing, index, this.clock.now()));
        }
      },
      modified: ({ state }) => {
        if (state !== undefined) observer.changed?.(qpn, state);
      },
      event: (event) => observer.event?.(qpn, event),
      destroyed: () => {
        if (this.sends.get(qpn) === sends) this.sends.delete(qpn);
        if (this.receives.get(qpn) === receives) this.receives.delete(qpn);
      },
    };
  }

  completionQueue(): CompletionQueueTap {
    return {
      completions: (ring, from, to) => {
        for (const index of indices(from, to)) this.completion(ring, index);
      },
    };
  }

  sharedReceives(srq: SharedReceiveQueue): SharedReceiveQueueTap {
    const { srqn } = srq;
    // Slots are numbers of their own, which do not wrap around.
    const queue = watched(~0);
    this.shared.set(srq, queue);
    if (srqn !== 0) this.numbered.set(srqn, queue);
    return {
      receives: ({ slots, submissions }, from, to) => {
        for (const index of indices(from, to)) {
          const slot = submissions.words[submissions.wordOf(index)]!;
          this.posted(queue, receiveAt({ qpn: 0, srqn }, slots, slot, this.clock.now()));
        }
      },
      destroyed: () => {
        if (this.numbered.get(srqn) === queue) this.numbered.delete(srqn);
      },
    };
  }

  private posted({ postedUs, mask }: Watched, request: PostedRequest): void {
    postedUs.set(request.index & mask, request.timeUs);
    this.observer.posted?.(request);
  }

  private send({ qpn, sendRing }: QueuePair, queue: Watched, index: number): void {
    const request = sendAt(qpn, sendRing, index, this.clock.now());
    const { opcode = 0 } = request;
    queue.opcodes.set(index & queue.mask, opcode);
    this.posted(queue, request);
    const status = this.observer.fail?.(request) ?? WcStatus.SUCCESS;
    if (status === WcStatus.SUCCESS) return;
    queue.failing.set(index, status);
    putLowByte(sendRing.words, sendRing.wordOf(index) + SQE.CONTROL, REFUSED | opcode);
  }

  private completion(ring: Ring, index: number): void {
    const seen = completionAt(ring, index, this.clock.now());
    const { kind, qpn, srqn } = seen;
    const own = kind === 'send' ? this.sends.get(qpn) : this.receives.get(qpn);
    const queue = own ?? this.numbered.get(srqn);
    if (seen.status === WcStatus.SUCCESS || kind !== 'send') return this.tell(seen, queue);
    const requested = queue?.opcodes.get(seen.index & queue.mask);
    const opcode =
      requested === undefined ? seen.opcode : (COMPLETED_AS[requested] as CompletedOpcode);
    const failing = queue?.failing.get(seen.index);
    if (failing === undefined) return this.tell({ ...seen, opcode }, queue);
    queue?.failing.delete(seen.index);
    // Behind an earlier failed request, it is flushed like all others.
    const status = seen.status === WcStatus.WR_FLUSH_ERR ? seen.status : failing;
    const at = ring.wordOf(index) + CQE.CONTROL;
    putLowByte(ring.words, at, status);
    ring.words[at] = (ring.words[at]! & ~0xff00) | (opcode << 8);
    this.tell({ ...seen, status, opcode }, queue);
  }

  private tell(seen: ObservedCompletion, queue: Watched | undefined): void {
    const postedUs = queue?.postedUs.get(seen.index & queue.mask);
    const tookUs = postedUs === undefined ? undefined : seen.timeUs - postedUs;
    this.observer.completed?.({ ...seen, ...(tookUs !== undefined && { tookUs }) });
  }
}

function putLowByte(words: Uint32Array, at: number, byte: number): void {
  words[at] = (words[at]! & ~0xff) | byte;
}
