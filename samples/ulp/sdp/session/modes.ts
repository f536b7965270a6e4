/**
 * Modes of each half of a connection: how the bytes of one direction are moved, and which side may
 * change that.
 */
import type { Half, Mode } from '../wire/index.js';

/** The mode of a new connection. */
export const FIRST_MODE: Mode = 'COMBINED';

interface ModeRule {
  /** SrcAvails that may be outstanding: none, one with data, or as many as the peer accepts. */
  readonly srcAvails: 'none' | 'one' | 'many';
  /** True if SinkAvails are allowed. */
  readonly sinkAvails: boolean;
}

export const MODE_RULES: Readonly<Record<Mode, ModeRule>> = {
  BUFFERED: { srcAvails: 'none', sinkAvails: false },
  COMBINED: { srcAvails: 'one', sinkAvails: false },
  PIPELINED: { srcAvails: 'many', sinkAvails: true },
};

interface ModeChangeRule {
  readonly from: Mode;
  readonly to: Mode;
  /** The side of the data that may change it. No mode is left by both, so changes cannot cross. */
  readonly by: 'source' | 'sink';
}

export const MODE_CHANGES: readonly ModeChangeRule[] = [
  { from: 'COMBINED', to: 'BUFFERED', by: 'source' },
  { from: 'COMBINED', to: 'PIPELINED', by: 'source' },
  { from: 'PIPELINED', to: 'COMBINED', by: 'source' },
  { from: 'BUFFERED', to: 'COMBINED', by: 'sink' },
];

/** The half, seen from the receiver, that a ModeChange by this side of the data names. */
export const HALF_OF: Readonly<Record<ModeChangeRule['by'], Half>> = {
  source: 'RECV',
  sink: 'SEND',
};

export function isModeChange(by: ModeChangeRule['by'], from: Mode, to: Mode): boolean {
  return MODE_CHANGES.some((rule) => rule.by === by && rule.from === from && rule.to === to);
}

/** Thresholds at which a side changes a mode by itself. */
export const MODE_POLICY = {
  /** SrcAvails refused in a row, after which the source stops sending them. */
  refusalsToBuffered: 4,
  /**
   * Messages of the source without a SinkAvail or a SrcAvail, after which it returns to COMBINED.
   */
  copiesToCombined: 256,
  /** Full messages consumed in BUFFERED, after which the sink requests COMBINED. */
  copiesFromBuffered: 256,
} as const;
