/** The close of an interface adapter: begun once, from upcalls or elsewhere, bounded in time. */
import { tearDown } from '../../di/index.js';
import type { Evd, Upcall } from '../../evd/index.js';
import { DatError } from '../../errors/index.js';
import type { DeviceLease } from '../common/adapter-services.js';
import type { CloseFlag } from '../common/constants.js';
import type { IaMad } from '../mad/calls.js';
import { closeSteps } from './close.js';
import type { IaCore } from '../common/adapter-state.js';

/** What a close gives back, and in what time. */
export interface ClosingInit {
  readonly lease: DeviceLease;
  readonly mad: IaMad;
  readonly timeoutMs: number;
}

export class IaClosing {
  /** Upcalls that have closed the adapter. */
  private readonly callers = new Set<Upcall>();
  /** Event dispatchers that the close is ending. */
  private ending: readonly Evd[] = [];
  private closed: Promise<void> | undefined = undefined;
  /** Until then the asynchronous EVD cannot be freed. */
  private readonly leaveAsyncEvd: () => void;

  constructor(
    private readonly core: IaCore,
    private readonly init: ClosingInit,
  ) {
    this.leaveAsyncEvd = core.asyncEvd.feed.attach();
  }

  /**
   * @param upcall that the adapter is closed from, which the close does not wait for
   * @throws DatError DAT_INVALID_STATE / DAT_INVALID_STATE_IA_IN_USE; DAT_INTERNAL_ERROR
   */
  async close(flag: CloseFlag, upcall: Upcall | undefined): Promise<void> {
    if (this.closed === undefined && flag === 'graceful') this.checkUnused();
    if (upcall !== undefined) this.closedFrom(upcall);
    if (this.closed !== undefined) return this.closed;
    this.core.isClosing = true;
    for (const end of [...this.core.closers]) end();
    this.closed = this.run();
    return this.closed;
  }

  /** An upcall that closes the adapter, first or later, is not waited for by the close. */
  private closedFrom(upcall: Upcall): void {
    this.callers.add(upcall);
    for (const evd of this.ending) evd.joinEnd(upcall);
  }

  private checkUnused(): void {
    const { children, evds, cnos, ia } = this.core;
    const left = children.size + evds.size - 1 + cnos.size + this.init.mad.size;
    if (left === 0) return;
    throw new DatError('DAT_INVALID_STATE', {
      subtype: 'DAT_INVALID_STATE_IA_IN_USE',
      operation: 'ia.close',
      message: `${left} objects of interface adapter ${ia.id} are left`,
      hint: 'free them first, or close abruptly',
      value: left,
    });
  }

  private async run(): Promise<void> {
    const { core, callers } = this;
    const { lease, mad, timeoutMs } = this.init;
    const { clock, timers, processHold } = core.context;
    const evds = (): readonly Evd[] => {
      this.leaveAsyncEvd();
      this.ending = [...core.evds];
      return this.ending;
    };
    const release = lease.release();
    const steps = closeSteps({
      children: core.children,
      evds,
      cnos: () => [...core.cnos],
      callers,
      endAgents: () => mad.unregisterAll(),
      release,
    });
    processHold.retain();
    try {
      await tearDown(steps, { operation: 'ia.close', clock, timers, deadlineMs: timeoutMs });
    } finally {
      processHold.release();
      core.ia.markFreed('ia.close');
      release.done();
    }
  }
}
