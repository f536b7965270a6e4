/**
 * Modes of a half of a connection: how the bytes of one direction travel, and which side may change
 * it. The halves of a connection have modes of their own.
 */
import type { Half, Mode } from '../wire/index.js';

/** The mode of a new connection. */
export const FIRST_MODE: Mode = 'COMBINED';

interface ModeRule {
  /** SrcAvail that may be outstanding: none, one with data, as many as the peer takes. */
  readonly srcAvails: 'none' | 'one' | 'many';
  /** SinkAvail may come. */
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

/** The half of the receiver that a ModeChange of this side of the data names. */
export const HALF_OF: Readonly<Record<ModeChangeRule['by'], Half>> = {
  source: 'RECV',
  sink: 'SEND',
};

export function isModeChange(by: ModeChangeRule['by'], from: Mode, to: Mode): boolean {
  return MODE_CHANGES.some((rule) => rule.by === by && rule.from === from && rule.to === to);
}

/** Thresholds at which a side changes a mode by itself. */
export const MODE_POLICY = {
  /** SrcAvails refused one after the other, after which the source is done with them. */
  refusalsToBuffered: 4,
  /**
   * Messages of the source without a SinkAvail or a SrcAvail, after which it is in COMBINED again.
   */
  copiesToCombined: 256,
  /**
   * Full messages that have been consumed in BUFFERED, after which the sink wants COMBINED again.
   */
  copiesFromBuffered: 256,
} as const;
