/**
 * Interface adapter (dat_ia): one opening of a device. It makes all other objects, and its close
 * ends those that are left, in order.
 */
import { inspect } from 'node:util';
import { tearDown } from '../../di/index.js';
import { type Cno, currentUpcall, type Evd, Upcall } from '../../evd/index.js';
import { DatError } from '../../errors/index.js';
import type { CloseFlag } from '../common/constants.js';
import { Csp } from '../connect/csp.js';
import { Ep } from '../endpoint/ep.js';
import { checkOneOf, checkOptions, invalid } from '../common/guards.js';
import { iaAttributes, type IaQuery } from './attributes.js';
import { type Child, closeSteps } from './close.js';
import { IaMad } from '../mad/calls.js';
import { IaXrc } from '../xrc/xrc-calls.js';
import { Lmr } from '../memory/lmr.js';
import { providerAttributes } from './provider-attributes.js';
import { Psp } from '../connect/psp.js';
import { Pz } from '../memory/pz.js';
import { Rmr } from '../memory/rmr.js';
import { Rsp } from '../connect/rsp.js';
import { Srq } from '../srq/srq.js';
import { Symbolic } from '../common/trace.js';

/** Opened by `openIa()`. */
export class Ia extends IaXrc {
  /** Upcalls that have closed the adapter. */
  private readonly callers = new Set<Upcall>();
  /** Event dispatchers that the close is ending. */
  private ending: readonly Evd[] = [];
  /** Management datagrams: agents of an application's own. */
  readonly mad = new IaMad(
    this.context,
    () => this.init.lease.mad(),
    (operation) => this.assertOpen(operation),
  );

  /** Attributes of adapter and provider (dat_ia_query). */
  query(): IaQuery {
    this.assertOpen('ia.query');
    const { device } = this.context;
    return {
      ia: iaAttributes(device),
      provider: providerAttributes(device, this.init.providerName),
    };
  }

  /**
   * Closes the adapter (dat_ia_close); its device ends with its last adapter.
   * @param flag `graceful` only closes what has no objects left; `abrupt` (default) ends them
   * first: connections (the peers are told), queue pairs, event dispatchers, memory regions, zones.
   * Closing again returns the same promise.
   * @param options.upcall the upcall that the adapter is closed from, which is not waited for; in
   * the synchronous part of a handler that is known
   * @throws DatError DAT_INVALID_STATE / DAT_INVALID_STATE_IA_IN_USE (graceful, objects left);
   * DAT_INTERNAL_ERROR when a step failed or the time ran out: everything else has been ended
   */
  async close(
    flag: CloseFlag = 'abrupt',
    options: { readonly upcall?: Upcall } = {},
  ): Promise<void> {
    checkOneOf('ia.close', 2, 'flag', flag, ['abrupt', 'graceful']);
    checkOptions('ia.close', 3, options, ['upcall']);
    const { upcall = currentUpcall() } = options;
    if (upcall !== undefined && !(upcall instanceof Upcall)) {
      throw invalid('ia.close', 3, 'upcall', upcall, 'an Upcall');
    }
    this.context.trace?.('ia.close', { ia: this.id, flag: new Symbolic(flag) });
    if (this.closing === undefined && flag === 'graceful') this.checkUnused();
    if (upcall !== undefined) this.closedFrom(upcall);
    if (this.closing !== undefined) return this.closing;
    this.closing = this.runClose();
    return this.closing;
  }

  /** Abrupt close. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  [inspect.custom](): string {
    const count = (type: abstract new (...args: never[]) => Child): number =>
      [...this.children].filter((child) => child instanceof type).length;
    const state = this.isFreed ? ', closed' : '';
    return (
      `Ia { id: ${this.id}, provider: '${this.init.providerName}', address: '${this.address}', ` +
      `eps: ${count(Ep)}, psps: ${count(Psp)}, lmrs: ${count(Lmr)}, rmrs: ${count(Rmr)}, ` +
      `srqs: ${count(Srq)}, rsps: ${count(Rsp)}, csps: ${count(Csp)}, pzs: ${count(Pz)}, ` +
      `evds: ${this.evds.size}, cnos: ${this.cnos.size}${state} }`
    );
  }

  protected get self(): Ia {
    return this;
  }

  /** Whoever closes from an upcall, first or later, is not waited for by the close. */
  private closedFrom(upcall: Upcall): void {
    this.callers.add(upcall);
    for (const evd of this.ending) evd.joinEnd(upcall);
  }

  private checkUnused(): void {
    const left = this.children.size + this.evds.size - 1 + this.cnos.size + this.mad.size;
    if (left === 0) return;
    throw new DatError('DAT_INVALID_STATE', {
      subtype: 'DAT_INVALID_STATE_IA_IN_USE',
      operation: 'ia.close',
      message: `${left} objects of interface adapter ${this.id} are left`,
      hint: 'free them first, or close abruptly',
      value: left,
    });
  }

  private async runClose(): Promise<void> {
    const { clock, timers, processHold } = this.context;
    const { lease, closeTimeoutMs } = this.init;
    const { children, callers } = this;
    const evds = (): readonly Evd[] => {
      this.leaveAsyncEvd();
      this.ending = [...this.evds];
      return this.ending;
    };
    const cnos = (): Cno[] => [...this.cnos];
    const endAgents = (): Promise<void> => this.mad.unregisterAll();
    const release = lease.release();
    processHold.retain();
    try {
      await tearDown(closeSteps({ children, evds, cnos, callers, endAgents, release }), {
        operation: 'ia.close',
        clock,
        timers,
        deadlineMs: closeTimeoutMs,
      });
    } finally {
      processHold.release();
      this.markFreed('ia.close');
      release.done();
    }
  }
}
