/**
 * State table of a slot, as its broker sees it. Other processes see its state in the shared table:
 * FREE, USED or RESTING.
 */
import type { SlotState } from './table-layout.js';

export type BrokerSlotState =
  | 'FREE'
  /** Its process is connected to the broker. */
  | 'USED'
  /** Its process is not connected (yet): it may be stopped or killed. */
  | 'ABSENT'
  /** Its process was killed: its numbers rest while packets for it may be in flight. */
  | 'RESTING';

export type SlotInput =
  /** A process comes and gets it. */
  | 'granted'
  /** Its process is back: at another broker, or after a forbidden message. */
  | 'returned'
  /** The connection has ended after GOODBYE. */
  | 'left'
  /** The connection has ended without. */
  | 'lost'
  /** Its process is gone. */
  | 'died'
  | 'rested';

export type SlotAction =
  /** Packets that arrive at its sockets are dropped. */
  | 'silence'
  /** Its sockets take packets again, without what was queued. */
  | 'wake'
  /** Its listeners and classes of management datagrams are free. */
  | 'dropClaims'
  /** Peers of its connections get a DREQ. */
  | 'disconnect'
  /** The records of its connections are free: of one that rests they stay, for the next broker. */
  | 'forget'
  | 'startRest'
  /** Asks after the process, until it returns or is gone. */
  | 'lookAfter';

export interface SlotRow {
  readonly next: BrokerSlotState;
  readonly actions: readonly SlotAction[];
}

const row = (next: BrokerSlotState, ...actions: readonly SlotAction[]): SlotRow => ({
  next,
  actions,
});

const DEATH = row('RESTING', 'silence', 'dropClaims', 'disconnect', 'startRest');

/** State table of a slot. Inputs that are not listed change nothing. */
export const SLOT_TABLE: Readonly<
  Record<BrokerSlotState, Partial<Readonly<Record<SlotInput, SlotRow>>>>
> = {
  FREE: { granted: row('USED', 'wake') },
  USED: {
    left: row('FREE', 'silence', 'dropClaims', 'disconnect', 'forget'),
    lost: row('ABSENT', 'lookAfter'),
  },
  ABSENT: { returned: row('USED'), died: DEATH },
  RESTING: { rested: row('FREE', 'forget') },
};

/** The state shown in the shared table. */
export const SHOWN_STATE: Readonly<Record<BrokerSlotState, SlotState>> = {
  FREE: 'FREE',
  USED: 'USED',
  ABSENT: 'USED',
  RESTING: 'RESTING',
};
