/** The states of a consumer notification object, as data. */

export type CnoState = 'UNTRIGGERED' | 'TRIGGERED' | 'DEAD';

/**
 * Inputs of a CNO: an EVD of it (or the consumer, by hand) `notify`s; a waiter, a subscriber or a
 * reader of the handle `take`s; its last EVD is freed (`orphan`); it is freed, or its adapter is
 * closed (`close`).
 */
export type CnoInput = 'notify' | 'take' | 'orphan' | 'close';

interface CnoTransition {
  readonly to: CnoState;
  /** The EVD that notified becomes the hint of the next taker. */
  readonly remembers?: true;
  /** A take is answered at once. */
  readonly answers?: true;
  /** Result for waiters: the hint of no EVD at all, or the error DAT_INVALID_STATE_CNO_DEAD. */
  readonly waiters?: 'no EVD' | 'dead';
}

export const CNO_STATES: Readonly<Record<CnoState, Readonly<Record<CnoInput, CnoTransition>>>> = {
  UNTRIGGERED: {
    notify: { to: 'TRIGGERED', remembers: true },
    take: { to: 'UNTRIGGERED' },
    orphan: { to: 'UNTRIGGERED', waiters: 'no EVD' },
    close: { to: 'DEAD', waiters: 'dead' },
  },
  TRIGGERED: {
    // Merged into the pending trigger: so a taker polls all EVDs.
    notify: { to: 'TRIGGERED' },
    take: { to: 'UNTRIGGERED', answers: true },
    orphan: { to: 'TRIGGERED' },
    close: { to: 'DEAD', waiters: 'dead' },
  },
  DEAD: {
    notify: { to: 'DEAD' },
    take: { to: 'DEAD' },
    orphan: { to: 'DEAD' },
    close: { to: 'DEAD' },
  },
};
