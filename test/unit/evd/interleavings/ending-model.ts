/** Teardowns, frees and closes that somebody waits for, and which upcalls each has to wait for. */
import type { Evd, Upcall } from '../../../../core/evd/index.js';
import { tearDown } from '../../../../core/di/index.js';
import type { EvdWorld } from './evd-world.js';
import { Violation } from './rules.js';
import type { Running } from './running.js';
import type { Core } from './space.js';

/** A teardown, free or close that somebody waits for. */
interface Ending {
  readonly own: Running | undefined;
  readonly waitsFor: Set<Running>;
  /** A close: waits for all but those that have closed too, even if they come later. */
  readonly joint: boolean;
  resolved: boolean;
}

const NO_TIMERS = { start: () => undefined, stop: () => undefined };

export class EndingModel {
  /** Those that are not over. */
  list: Ending[] = [];
  private closing: Promise<void> | undefined;
  private readonly callers = new Set<Upcall>();
  /** What the close has to end. */
  private closed: readonly Evd[] = [];

  constructor(
    private readonly world: EvdWorld,
    private readonly core: Core,
  ) {}

  get isClosing(): boolean {
    return this.closing !== undefined;
  }

  /** A close is among them: its steps take more turns than a promise alone. */
  get areJoint(): boolean {
    return this.list.some(({ joint }) => joint);
  }

  check(): void {
    for (const ending of this.list) {
      const over = this.isOver(ending);
      if (ending.resolved && !over) {
        throw new Violation('teardown resolved while an upcall is in progress');
      }
      if (over && !ending.resolved) throw new Violation('teardown does not resolve');
    }
    this.list = this.list.filter((ending) => !this.isOver(ending));
  }

  /** @param isUnnamed the call does not name its upcall, which awaits it */
  teardown(own: Running | undefined, isUnnamed = false): void {
    const { evd, freed } = this.world;
    const waitsFor = this.othersOf(own);
    const done = freed
      ? evd.free({ ...(own !== undefined && { upcall: own.upcall }) })
      : ((isUnnamed ? undefined : own?.upcall.teardown()) ?? evd.modifyUpcall('TEARDOWN'));
    this.follow(done, own, waitsFor, false);
  }

  /** Upcalls in progress that an ending waits for: not its own, nor others that wait likewise. */
  private othersOf(own: Running | undefined): Set<Running> {
    const { running } = this.world;
    return new Set(running.filter((each) => each !== own && (!own || !this.waits(each))));
  }

  free(own: Running | undefined): void {
    const waitsFor = this.othersOf(own);
    const done = this.world.evd.free();
    this.world.ended();
    this.follow(done, own, waitsFor, false);
  }

  /** The end of the adapter, as `ia.close()` does it. */
  close(own: Running | undefined): void {
    const { world } = this;
    if (this.closing === undefined && !world.freed) this.closed = [world.evd];
    const evds = this.closed;
    if (own !== undefined) {
      this.callers.add(own.upcall);
      if (this.closing !== undefined) for (const evd of evds) evd.joinEnd(own.upcall);
    }
    this.closing ??= tearDown(
      this.core.closeSteps({
        children: new Set(),
        evds: () => evds,
        cnos: () => world.cno?.list ?? [],
        endAgents: () => Promise.resolve(),
        callers: this.callers,
        release: { modules: [], device: [], done: () => undefined },
      }),
      { ...world.host, operation: 'ia.close', timers: NO_TIMERS, deadlineMs: 1 },
    );
    this.follow(this.closing, own, new Set(), true);
  }

  private follow(
    done: Promise<void>,
    own: Running | undefined,
    waitsFor: Set<Running>,
    joint: boolean,
  ): void {
    const ending: Ending = { own, waitsFor, joint, resolved: false };
    this.list.push(ending);
    void done.then(() => (ending.resolved = true));
  }

  isOver({ waitsFor, joint }: Ending): boolean {
    const { freed, running } = this.world;
    if (!joint) return [...waitsFor].every((upcall) => !running.includes(upcall));
    if (this.closed.length === 0) return true;
    return freed && running.every((upcall) => this.hasClosed(upcall));
  }

  /** A call of this upcall waits for others at this moment. */
  waits(upcall: Running): boolean {
    if (this.closed.length > 0 && this.hasClosed(upcall)) return true;
    return this.list.some((ending) => ending.own === upcall && !this.isOver(ending));
  }

  /** Somebody outside waits for all upcalls in progress: another would be no news. */
  get isTornDown(): boolean {
    const { running } = this.world;
    return this.list.some(({ own, joint, waitsFor }) => {
      const outside = own === undefined || !running.includes(own);
      return outside && !joint && running.every((upcall) => waitsFor.has(upcall));
    });
  }

  /** It has closed the adapter. */
  hasClosed({ upcall }: Running): boolean {
    return this.callers.has(upcall);
  }
}
