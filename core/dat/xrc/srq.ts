/**
 * XRC shared receive queue: remote initiators address it by its number. Its completions come on its
 * own EVD, because a target takes them, which is no endpoint.
 */
import { showAs } from '../../spi/checks/index.js';
import {
  type CompletionOwner,
  dtoOf,
  dtoStatusOf,
  type Evd,
  XrcReceive,
  type XrcReceiveEvent,
} from '../../evd/index.js';
import { CQE, WcFlags, WcStatus } from '../../spi/index.js';
import type { Observable } from '../../stream/index.js';
import type { AdapterState } from '../common/adapter-state.js';
import { streamOf } from '../common/private-evd.js';
import type { Pz } from '../memory/pz.js';
import { type CreateSharedReceiveQueue, Srq } from '../srq/srq.js';
import type { SrqAttributes, SrqOptions } from '../srq/attributes.js';
import type { XrcDomain } from './domain.js';

/** Options of `domain.createSrq`. */
export interface XrcSrqOptions extends SrqOptions {
  /** Takes its completions; without one they are at `srq.completions$`. */
  readonly recvEvd?: Evd;
}

/** Its EVD, and whether that is its own. */
export interface XrcSrqEvd {
  readonly evd: Evd;
  readonly isPrivate: boolean;
  /** Unregisters it when the queue is freed. */
  readonly uses: readonly (() => void)[];
}

/** Made by `domain.createSrq()`. */
export class XrcSrq extends Srq {
  static {
    showAs(this, 'XrcSrq', (srq) => ({ ...srq.facts(), domain: srq.domain, srqn: srq.srqn }));
  }

  /** @internal */
  constructor(
    readonly domain: XrcDomain,
    core: AdapterState,
    pz: Pz,
    attributes: SrqAttributes,
    private readonly events: XrcSrqEvd,
    create: CreateSharedReceiveQueue,
  ) {
    super(core, pz, attributes, create);
    core.owners.addShared(this.srqn, this.receives);
    domain.users++;
  }

  /** Number that initiators address: 24 bits, unique on the device. */
  get srqn(): number {
    return this.queue.srqn;
  }

  /**
   * Receives, when the queue was made without an EVD. One subscriber.
   * @throws DatError DAT_INVALID_STATE when there is an EVD: use its `events$`
   */
  get completions$(): Observable<XrcReceiveEvent> {
    const { evd, isPrivate } = this.events;
    return streamOf<XrcReceiveEvent>('srq.completions$', evd, isPrivate);
  }

  /** Lets consumers of its own EVD keep the process alive: the default. @returns itself */
  ref(): this {
    if (this.events.isPrivate) this.events.evd.ref();
    return this;
  }

  /** Lets the process exit while `completions$` has a subscriber, as `unref` of node:net. */
  unref(): this {
    if (this.events.isPrivate) this.events.evd.unref();
    return this;
  }

  /** @internal */
  override destroy(by: string): void {
    const { evd, isPrivate, uses } = this.events;
    super.destroy(by);
    evd.feed.purge(0, this.srqn);
    for (const end of uses) end();
    if (isPrivate) this.core.freePrivateEvd(evd);
    this.domain.users--;
  }

  private readonly receives: CompletionOwner = {
    onCompletion: (words, at) => this.slots.reclaim(words[at + CQE.WQE_INDEX] ?? 0),
    toEvent: (words, at) => this.toEvent(words, at),
  };

  private toEvent(words: Uint32Array, at: number): XrcReceiveEvent {
    const control = words[at + CQE.CONTROL] ?? 0;
    const status = control & 0xff;
    const flags = (control >>> 16) & 0xff;
    const arrived = status === WcStatus.SUCCESS;
    const immediate = words[at + CQE.IMMEDIATE_OR_INVALIDATE] ?? 0;
    const event = new XrcReceive(
      this,
      words[at + CQE.QPN] ?? 0,
      (words[at + CQE.COOKIE_LO] ?? 0) + (words[at + CQE.COOKIE_HI] ?? 0) * 2 ** 32,
      dtoStatusOf(status),
      arrived ? (words[at + CQE.BYTE_LENGTH] ?? 0) : 0,
      dtoOf((control >>> 8) & 0xff, flags),
    );
    if (arrived && (flags & WcFlags.WITH_IMM) !== 0) event.immediate = immediate;
    if (arrived && (flags & WcFlags.WITH_INV) !== 0) event.invalidatedRmrContext = immediate;
    if (!arrived) event.vendorError = words[at + CQE.VENDOR_ERROR] ?? 0;
    return event;
  }
}
