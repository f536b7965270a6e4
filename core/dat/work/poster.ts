/**
 * What all posting calls share: legality by state, checks, room in the queues, doorbells. Nothing
 * here allocates unless something is wrong.
 */
import { DatError } from '../../errors/index.js';
import { type DeviceCapability, WrFlags } from '../../spi/index.js';
import { CompletionFlags, flagNames } from '../common/constants.js';
import type { EpAttributes } from '../endpoint/attributes.js';
import type { EpQueues } from './queues.js';
import { EP_STATES, type EpCall, type EpStateName, type Legality } from '../endpoint/states.js';
import { checkBits, invalid, isBitSet } from '../common/guards.js';
import { Handle } from '../common/handle.js';
import type { IaCore } from '../ia/core.js';
import { positionOf } from './post-arguments.js';
import { checkCookie } from './post-checks.js';
import type { Pz } from '../memory/pz.js';
import {
  checkRemote,
  type RemoteAddress,
  RemoteSegment,
  type Segments,
} from '../memory/segment.js';
import { Symbolic } from '../common/trace.js';
import { Slot } from './work-queue.js';

const { SUPPRESS, UNSIGNALLED, BARRIER_FENCE } = CompletionFlags;

/** The part of `Ep` that writes requests. */
export abstract class EpPoster extends Handle {
  /** @internal */
  abstract readonly core: IaCore;
  abstract readonly attributes: EpAttributes;
  abstract readonly state: EpStateName;
  protected abstract readonly knownState: EpStateName;
  abstract readonly pz: Pz;
  /** Of the present life: `ep.reset()` puts others in place. */
  protected abstract queues: EpQueues;

  /** Completions that have come become known. */
  protected abstract takeInCompletions(): void;

  /** Requests that can be posted before the queue is full. */
  get requestsFree(): number {
    return Math.max(0, this.queues.sends.limit - this.queues.sends.outstanding);
  }

  /**
   * Everything that `work` posts on this endpoint leaves with one doorbell per queue, also when
   * `work` throws; of many requests, each 32 with one, so that the device works on them while
   * `work` posts the next. Bursts nest; the outermost rings.
   */
  burst(work: () => void): void {
    this.assertLive('ep.burst');
    if (typeof work !== 'function') throw invalid('ep.burst', 1, 'work', work, 'a function');
    const { queues } = this;
    queues.beginBurst();
    try {
      work();
    } finally {
      queues.endBurst();
    }
  }

  protected checkLegal(operation: string, call: EpCall): Legality {
    const { subtype, calls } = EP_STATES[this.knownState];
    const legality = calls[call];
    if (legality !== 'illegal') return legality;
    throw new DatError('DAT_INVALID_STATE', {
      subtype,
      operation,
      message: `endpoint ${this.id} is ${this.knownState}`,
      value: this.knownState,
    });
  }

  /** `checkLegal` for posts. In CONNECTED all are legal, which spares the look-up of a name. */
  protected checkPost(operation: string, call: 'postRequest' | 'postReceive'): void {
    if (this.knownState !== 'CONNECTED') this.checkLegal(operation, call);
  }

  /** @param mask flags that the request takes besides UNSIGNALLED */
  protected checkRequest(operation: string, cookie: number, flags: number, mask: number): void {
    this.assertLive(operation);
    this.checkPost(operation, 'postRequest');
    checkCookie(operation, cookie);
    const allowed = mask | (this.attributes.requestCompletionFlags & UNSIGNALLED);
    if (isBitSet(flags, allowed)) return;
    const expected = `of ${flagNames(CompletionFlags, allowed)}`;
    checkBits(operation, positionOf(operation, 'flags'), 'flags', flags, allowed, expected);
  }

  /** @throws DatError DAT_MODEL_NOT_SUPPORTED */
  protected checkCapability(operation: string, capability: DeviceCapability): void {
    if (this.core.context.device.capabilities.has(capability)) return;
    throw new DatError('DAT_MODEL_NOT_SUPPORTED', {
      operation,
      message: `the device lacks the capability '${capability}'`,
      value: capability,
    });
  }

  /** Reads and atomics need an answer; how many may wait for one is agreed when connecting. */
  protected checkInitiator(operation: string): void {
    if (this.attributes.maxRdmaReadOut > 0) return;
    throw new DatError('DAT_INVALID_STATE', {
      operation,
      message: 'the endpoint was made with maxRdmaReadOut 0: it may not issue reads or atomics',
      value: 0,
    });
  }

  /** Writes a checked request and rings, unless a burst is under way. */
  protected post(
    operation: string,
    opcode: number,
    wrFlags: number,
    segments: Segments,
    cookie: number,
    flags: number,
    addressLo: number,
    addressHi: number,
    rkey: number,
    immediate: number,
    slotFlags: number,
  ): void {
    if (this.queues.sendsFull) this.makeRoom(operation, true);
    const fence = (flags & BARRIER_FENCE) === 0 ? 0 : WrFlags.FENCE;
    const hidden = (flags & SUPPRESS) === 0 ? 0 : Slot.HIDDEN;
    const quiet = (flags & UNSIGNALLED) === 0 ? 0 : Slot.QUIET;
    this.queues.postRequest(
      opcode,
      wrFlags | fence,
      slotFlags | hidden | quiet,
      segments,
      cookie,
      addressLo,
      addressHi,
      rkey,
      immediate,
    );
  }

  /** The queue looks full: perhaps completions wait to be taken in. */
  protected makeRoom(operation: string, request: boolean): void {
    this.takeInCompletions();
    const full = request ? this.queues.sendsFull : this.queues.receivesFull;
    if (!full) return;
    const limit = request ? this.attributes.maxRequestDtos : this.attributes.maxRecvDtos;
    throw new DatError('DAT_INSUFFICIENT_RESOURCES', {
      subtype: 'DAT_RESOURCE_CREDITS',
      operation,
      message: `${limit} ${request ? 'requests' : 'receives'} are outstanding: the queue is full`,
      hint: 'wait for completions, or ask for more in the endpoint attributes',
      value: limit,
    });
  }

  protected traceRequest(
    call: string,
    segments: unknown,
    cookie: number,
    remote: RemoteAddress | undefined,
    flags: number,
  ): void {
    const { trace } = this.core.context;
    if (trace === undefined) return;
    trace(call, {
      ep: this.id,
      segments: countOf(segments),
      cookie,
      remote: remoteText(remote),
      flags: new Symbolic(flagNames(CompletionFlags, flags)),
    });
  }
}

/** The remote address parsed: at once, or on the spot for one that was not. */
export function remoteSegment(
  operation: string,
  remote: RemoteSegment | RemoteAddress,
): RemoteSegment {
  if (remote instanceof RemoteSegment) return remote;
  checkRemote(operation, positionOf(operation, 'remote'), remote);
  return new RemoteSegment(remote);
}

export function countOf(segments: unknown): number {
  return Array.isArray(segments) ? segments.length : 1;
}

/** Traces are written before parameters are checked. */
function remoteText(remote: RemoteAddress | undefined): Symbolic | undefined {
  const address: unknown = remote?.address;
  return typeof address === 'bigint' ? new Symbolic(`0x${address.toString(16)}`) : undefined;
}
