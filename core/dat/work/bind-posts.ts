/** Posting of binds: what `rmr.bind` and `rmr.unbind` do on an endpoint. */
import { DatError } from '../../errors/index.js';
import { type Evd, EvdFlags } from '../../evd/index.js';
import { WrFlags } from '../../spi/index.js';
import { CompletionFlags, flagNames } from '../common/constants.js';
import type { BindWork } from './binds.js';
import { EpIbPosts } from './ib-posts.js';
import type { EpQueues } from './queues.js';
import { checkBits } from '../common/guards.js';
import { positionOf } from './post-arguments.js';
import { checkCookie } from './post-checks.js';
import type { Rmr } from '../memory/rmr.js';
import type { RmrBinding } from '../memory/rmr-binding.js';
import { Slot } from './work-queue.js';

const { SUPPRESS, UNSIGNALLED, BARRIER_FENCE } = CompletionFlags;

/** The part of `Ep` that binds windows. */
export abstract class EpBindPosts extends EpIbPosts {
  /** Takes completions of binds. */
  protected abstract readonly bindEvd: Evd;

  /**
   * @internal whether a bind may be posted now, with room for so many entries
   * @throws DatError
   */
  checkBind(operation: string, cookie: number, flags: number, entries: number): void {
    this.assertLive(operation);
    this.checkLegal(operation, 'bindRmr');
    checkCookie(operation, cookie);
    const mask = SUPPRESS | BARRIER_FENCE | (this.attributes.requestCompletionFlags & UNSIGNALLED);
    const position = positionOf(operation, 'flags');
    checkBits(operation, position, 'flags', flags, mask, `of ${flagNames(CompletionFlags, mask)}`);
    this.checkBindEvd(operation);
    if (this.requestsFree < entries) this.takeInCompletions();
    if (this.requestsFree >= entries) return;
    throw new DatError('DAT_INSUFFICIENT_RESOURCES', {
      subtype: 'DAT_RESOURCE_CREDITS',
      operation,
      message: `it takes ${entries} entries of the request queue; ${this.requestsFree} are free`,
      hint: 'wait for completions, or ask for more in the endpoint attributes',
      value: this.requestsFree,
    });
  }

  /** @internal the queues that a bind posted now goes to */
  get bindQueues(): EpQueues {
    return this.queues;
  }

  /** @internal after `checkBind` */
  postBind(
    rmr: Rmr,
    binding: RmrBinding | undefined,
    work: BindWork,
    cookie: number,
    flags: number,
  ): void {
    const wrFlags = (flags & BARRIER_FENCE) === 0 ? 0 : WrFlags.FENCE;
    const hidden = (flags & SUPPRESS) === 0 ? 0 : Slot.HIDDEN;
    const quiet = (flags & UNSIGNALLED) === 0 ? 0 : Slot.QUIET;
    this.queues.binds.post(rmr, binding, work, cookie, wrFlags, hidden | quiet);
  }

  private checkBindEvd(operation: string): void {
    const { bindEvd } = this;
    if ((bindEvd.streams & EvdFlags.RMR_BIND) !== 0) return;
    throw new DatError('DAT_INVALID_STATE', {
      subtype: 'DAT_INVALID_STATE_EP_EVD_REQUEST',
      operation,
      message: `event dispatcher ${bindEvd.id} of the endpoint was made without EvdFlags.RMR_BIND`,
      value: bindEvd,
    });
  }
}
