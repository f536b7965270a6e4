/** State table of a process that gets a slot, and keeps it when the broker is gone. */

export type MemberState =
  /** Not begun. */
  | 'IDLE'
  /** Looks for the broker, or becomes it. */
  | 'SEEKING'
  /** Connected to a broker that has not answered. */
  | 'JOINING'
  | 'MEMBER'
  | 'BROKER'
  /** Its slot is lost, or it never had one. */
  | 'LOST'
  | 'CLOSED';

export type MemberInput =
  | 'start'
  /** A broker is there. */
  | 'found'
  /** The name is ours. */
  | 'elected'
  /** Neither: another process is about to be broker. */
  | 'undecided'
  | 'admitted'
  /** The broker refuses, another user has the name, or the system does not let us. */
  | 'failed'
  /** The link has ended, or was ended after what may not be said. */
  | 'linkLost'
  | 'timedOut'
  | 'close';

export type MemberAction =
  | 'seek'
  | 'seekLater'
  /** Without a slot: of the sockets that have come, so that a group which is gone is gone. */
  | 'letGo'
  /** Says HELLO, with the sockets of our slot where we have one. */
  | 'hello'
  | 'preside'
  | 'startTimer'
  | 'stopTimer'
  /** Tells the opener, once. */
  | 'tellJoined'
  | 'tellFailed'
  | 'goodbye'
  /** As broker: what others must not take for ours any more. */
  | 'resign'
  | 'release';

export interface MemberRow {
  readonly next: MemberState;
  readonly actions: readonly MemberAction[];
}

const row = (next: MemberState, ...actions: readonly MemberAction[]): MemberRow => ({
  next,
  actions,
});

/** State table of a member. Inputs that are not listed change nothing. */
export const MEMBER_TABLE: Readonly<
  Record<MemberState, Partial<Readonly<Record<MemberInput, MemberRow>>>>
> = {
  IDLE: { start: row('SEEKING', 'startTimer', 'seek'), close: row('CLOSED') },
  SEEKING: {
    found: row('JOINING', 'hello'),
    elected: row('BROKER', 'stopTimer', 'preside', 'tellJoined'),
    undecided: row('SEEKING', 'seekLater'),
    failed: row('LOST', 'stopTimer', 'release', 'tellFailed'),
    timedOut: row('LOST', 'release', 'tellFailed'),
    close: row('CLOSED', 'stopTimer', 'release'),
  },
  JOINING: {
    admitted: row('MEMBER', 'stopTimer', 'tellJoined'),
    linkLost: row('SEEKING', 'letGo', 'seekLater'),
    failed: row('LOST', 'stopTimer', 'release', 'tellFailed'),
    timedOut: row('LOST', 'release', 'tellFailed'),
    close: row('CLOSED', 'stopTimer', 'goodbye', 'release'),
  },
  MEMBER: {
    linkLost: row('SEEKING', 'seek'),
    close: row('CLOSED', 'goodbye', 'release'),
  },
  BROKER: {
    failed: row('LOST', 'resign', 'release', 'tellFailed'),
    close: row('CLOSED', 'resign', 'release'),
  },
  LOST: { close: row('CLOSED') },
  CLOSED: {},
};
