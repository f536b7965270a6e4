/**
 * Pending binds on the queues of an endpoint's queue pair: their entries in the send queue, and the
 * window of each completion.
 */
import { BindCompletion, dtoStatusOf, type RmrBindCompletionEvent } from '../../evd/index.js';
import { CQE, WcStatus, WrFlags, WrOpcode } from '../../spi/index.js';
import type { Lmr } from '../memory/lmr.js';
import type { LmrSegment } from '../memory/segment.js';
import { EntryFlag } from './entry-ring.js';
import type { EpQueues } from './queues.js';
import { slotFlagsOf, wrFlagsOf } from './request-specs.js';
import type { Ep } from '../endpoint/ep.js';
import type { Rmr } from '../window/rmr.js';

/** The binding of a window: made by the bind that opened it, ended when it is closed. */
export class RmrBinding {
  private readonly close: (() => void) | undefined;
  private open = true;

  readonly lmr: Lmr;
  readonly offsetBytes: number;
  readonly lengthBytes: number;
  /** The peer has invalidated the key, perhaps before the completion of the bind. */
  isInvalidated = false;

  /** @param queues that the bind was posted on: an endpoint's window ends with them */
  constructor(
    { lmr, offsetBytes, lengthBytes }: LmrSegment,
    readonly privileges: number,
    readonly zeroBased: boolean,
    readonly rmrContext: number,
    readonly queues: EpQueues,
  ) {
    this.lmr = lmr;
    this.offsetBytes = offsetBytes;
    this.lengthBytes = lengthBytes;
    lmr.boundRmrs++;
    if (!zeroBased) {
      this.close = lmr.pz.rmrContexts.open(rmrContext, lmr, offsetBytes, lengthBytes);
    }
  }

  /** Address of the first byte for peers. */
  get address(): bigint {
    return this.zeroBased ? 0n : this.lmr.address + BigInt(this.offsetBytes);
  }

  /** Releases the region. */
  end(): void {
    if (!this.open) return;
    this.open = false;
    this.lmr.boundRmrs--;
    this.close?.();
  }
}

const U32 = 2 ** 32;
const NONE = -1;

/** A bind as a send queue entry. */
export interface BindWork {
  /**
   * BIND_MW opens the window, or (a PZ window, without a binding) closes it; LOCAL_INV closes an
   * endpoint's window. An empty RDMA_WRITE is for a closed window: only the completion is wanted.
   */
  readonly opcode: WrOpcode;
  /** Words of BIND_MW. */
  readonly words?: Uint32Array;
  /** The key that LOCAL_INV closes. */
  readonly rkey?: number;
  /** The key of an endpoint's window, which is closed before it is opened again. */
  readonly replaces?: number | undefined;
}

interface Pending {
  readonly rmr: Rmr;
  readonly binding: RmrBinding | undefined;
  /** Free-running index of the entry that completes it, and of the invalidation before it. */
  readonly index: number;
  readonly closing: number;
  /** WcStatus of the invalidation. */
  closed: number;
}

export class EpBinds {
  /** In the order of the queue. */
  private readonly pending: Pending[] = [];
  /** Completed and not dequeued, by index. Created for the first bind. */
  private shown: Map<number, Pending> | undefined = undefined;
  /** Windows that only this queue pair opens. */
  private own: Set<Rmr> | undefined = undefined;

  constructor(
    private readonly ep: Ep,
    private readonly queues: EpQueues,
  ) {}

  /**
   * Writes the entries; the caller has checked everything, including that there is room.
   * @param flags CompletionFlags
   */
  post(
    rmr: Rmr,
    binding: RmrBinding | undefined,
    work: BindWork,
    cookie: number,
    flags: number,
  ): void {
    const { queues } = this;
    const { opcode, words, rkey, replaces } = work;
    const wrFlags = wrFlagsOf(flags);
    let closing = NONE;
    if (replaces !== undefined) {
      closing = queues.sends.producer;
      queues.putPlain(
        WrOpcode.LOCAL_INV,
        wrFlags,
        EntryFlag.HIDDEN | EntryFlag.MARKER,
        0,
        replaces,
      );
    }
    const index = queues.sends.producer;
    const shown = slotFlagsOf(flags) | EntryFlag.SIGNALLED;
    queues.putPlain(opcode, wrFlags | WrFlags.SIGNALED, shown, cookie, rkey, words);
    this.pending.push({ rmr, binding, index, closing, closed: WcStatus.SUCCESS });
    queues.kickSends();
  }

  /** Ends requests up to `index`, the last one with this status. */
  onCompletion(index: number, status: number): void {
    for (let first = this.pending[0]; first !== undefined; first = this.pending[0]) {
      if (first.closing === index) first.closed = status;
      if (((first.index - index) | 0) > 0) return;
      this.pending.shift();
      this.settle(first, first.index === index ? status : WcStatus.SUCCESS);
      (this.shown ??= new Map()).set(first.index, first);
    }
  }

  /** True if the consumer does not see the completion. */
  hide(index: number): void {
    this.shown?.delete(index);
  }

  /** The event of a completion, if it is a bind's; call it once. */
  eventOf(words: Uint32Array, at: number): RmrBindCompletionEvent | undefined {
    const { shown } = this;
    if (shown === undefined || shown.size === 0) return undefined;
    const index = words[at + CQE.WQE_INDEX] ?? 0;
    const bind = shown.get(index);
    if (bind === undefined) return undefined;
    shown.delete(index);
    const status = (words[at + CQE.CONTROL] ?? 0) & 0xff;
    const cookie = (words[at + CQE.COOKIE_LO] ?? 0) + (words[at + CQE.COOKIE_HI] ?? 0) * U32;
    // If the invalidation fails, so does the bind that needed it.
    const outcome = dtoStatusOf(isFailure(bind.closed) ? bind.closed : status);
    return new BindCompletion(bind.rmr, this.ep, cookie, outcome);
  }

  /**
   * The peer has invalidated a window (SEND_WITH_INV). A bind completes behind all requests before
   * it, so the message of a peer that already has the key may come first.
   */
  onInvalidated(rkey: number): void {
    if (this.pending.some(({ rmr }) => rmr.scope === 'EP' && rmr.closeIf(rkey))) return;
    for (const rmr of this.own ?? []) {
      if (!rmr.closeIf(rkey)) continue;
      this.own?.delete(rmr);
      return;
    }
  }

  /**
   * The queue pair is destroyed: pending binds have not happened, and its own windows are closed.
   * Completed ones may still be dequeued.
   */
  discard(): void {
    for (const bind of this.pending.splice(0)) this.settle(bind, WcStatus.WR_FLUSH_ERR);
    for (const rmr of this.own ?? []) rmr.onClosed();
    this.own = undefined;
  }

  private settle({ rmr, binding, closing, closed }: Pending, status: number): void {
    const done = status === WcStatus.SUCCESS;
    if (!done && closing !== NONE && closed === WcStatus.SUCCESS) rmr.onClosed();
    rmr.onBindDone(binding, done);
    if (rmr.scope !== 'EP') return;
    if (rmr.isOpen) (this.own ??= new Set()).add(rmr);
    else this.own?.delete(rmr);
  }
}

function isFailure(status: number): boolean {
  return status !== WcStatus.SUCCESS && status !== WcStatus.WR_FLUSH_ERR;
}
