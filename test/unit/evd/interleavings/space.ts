/** What can happen in an EVD world, and how much of it at a time. Nothing else is bounded. */
import type { Cno, Evd } from '../../../../core/evd/index.js';
import type { closeSteps } from '../../../../core/dat/ia/closing.js';

export type Enabled = 'ONE' | 'NOTIFY' | 'MANY';
export type Pending = 'deliver' | 'keep' | 'refuse';
export type Taker = 'waiter' | 'iterator' | 'subscription';

export interface Space {
  /** A device's own thread completes at any time; otherwise only between steps. */
  readonly hardware: boolean;
  /** Events that wait at a time, at most; there is no end of them. */
  readonly events: number;
  /** Completions that come while one step is under way, at most. */
  readonly arrivals: number;
  /** Software events come too, and are merged. */
  readonly software: boolean;
  /** Any arm may fail. */
  readonly armFailures: boolean;
  /** Upcalls that outlive their call, at a time; also the limit under MANY. */
  readonly asyncUpcalls: number;
  /** Policies to enable, from outside and from within upcalls. */
  readonly policies: readonly Enabled[];
  /** What to do with events that wait when that happens. */
  readonly pending: readonly Pending[];
  /** What else takes events. */
  readonly takers: readonly Taker[];
  /** A CNO comes and goes, is waited for and triggered; the EVD is enabled and disabled. */
  readonly cno: boolean;
  /** The adapter is closed, from outside and from within upcalls. */
  readonly close: boolean;
  /**
   * Upcalls that outlive their call are async functions, and may await their own end, which is
   * refused.
   */
  readonly isAsync?: boolean;
  /** The planted device: arming fires for what is already there. */
  readonly levelTriggered?: boolean;
}

/** The classes under test: the real ones, or those of a copy with a planted bug. */
export interface Core {
  readonly Evd: typeof Evd;
  readonly Cno: typeof Cno;
  readonly closeSteps: typeof closeSteps;
}
