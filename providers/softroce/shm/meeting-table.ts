/**
 * State table of two devices of one host that set up a channel. Either may call the other. If both
 * call at the same time, the call of the smaller GUID stays, so that each pair has one channel. On
 * any failure they keep using the network.
 */

export type MeetingState =
  /** No channel. */
  | 'APART'
  /** Called, with a half of the channel; the peer's HELLO is awaited. */
  | 'CALLING'
  /** The peer's half is mapped; that ours is, is awaited. */
  | 'MAPPED'
  /** The peer, whose call stays, has said so: its call is awaited. */
  | 'CROSSED'
  /** The channel is there. */
  | 'MET';

export type MeetingInput =
  /** A connection would have the channel. */
  | 'wanted'
  /** HELLO on the socket of our call. */
  | 'answered'
  /** HELLO of a peer that calls, whose GUID is smaller, or greater, than ours. */
  | 'smallerCalls'
  | 'greaterCalls'
  /** READY on the socket of our call. */
  | 'ready'
  /** CROSSED on the socket of our call. */
  | 'crossed'
  /** The socket's end, the channel's end, or something that may not be said. */
  | 'ended'
  | 'timedOut'
  /** An action could not be done. */
  | 'failed';

export type MeetingAction =
  /** Connects, and sends HELLO with our half. */
  | 'call'
  /** Takes the call that has come: sends HELLO with our half, maps the peer's, sends READY. */
  | 'answer'
  /** Maps the half of the peer that has answered. */
  | 'attach'
  /** Tells the peer of our segments. */
  | 'announce'
  /** Tells the caller that our own call stays. */
  | 'refuse'
  /** Ends the call that has come. */
  | 'decline'
  /** Gives up our call, or the channel. */
  | 'hangUp'
  | 'startTimer'
  | 'stopTimer'
  /** Tells those that have asked. */
  | 'tellMet'
  | 'tellApart';

export interface MeetingRow {
  readonly next: MeetingState;
  readonly actions: readonly MeetingAction[];
}

const row = (next: MeetingState, ...actions: readonly MeetingAction[]): MeetingRow => ({
  next,
  actions,
});

/** State table of a meeting. Inputs that are not listed change nothing. */
export const MEETING_TABLE: Readonly<
  Record<MeetingState, Partial<Readonly<Record<MeetingInput, MeetingRow>>>>
> = {
  APART: {
    wanted: row('CALLING', 'startTimer', 'call'),
    smallerCalls: row('MET', 'answer'),
    greaterCalls: row('MET', 'answer'),
  },
  CALLING: {
    answered: row('MAPPED', 'attach'),
    smallerCalls: row('MET', 'stopTimer', 'hangUp', 'answer', 'tellMet'),
    greaterCalls: row('CALLING', 'refuse'),
    crossed: row('CROSSED', 'hangUp'),
    ended: row('APART', 'stopTimer', 'hangUp', 'tellApart'),
    timedOut: row('APART', 'hangUp', 'tellApart'),
    failed: row('APART', 'stopTimer', 'hangUp', 'tellApart'),
  },
  MAPPED: {
    wanted: row('MAPPED'),
    ready: row('MET', 'stopTimer', 'announce', 'tellMet'),
    smallerCalls: row('MAPPED', 'decline'),
    greaterCalls: row('MAPPED', 'decline'),
    ended: row('APART', 'stopTimer', 'hangUp', 'tellApart'),
    timedOut: row('APART', 'hangUp', 'tellApart'),
    failed: row('APART', 'stopTimer', 'hangUp', 'tellApart'),
  },
  CROSSED: {
    smallerCalls: row('MET', 'stopTimer', 'answer', 'tellMet'),
    greaterCalls: row('MET', 'stopTimer', 'answer', 'tellMet'),
    timedOut: row('APART', 'tellApart'),
  },
  MET: {
    wanted: row('MET', 'tellMet'),
    // One channel for each pair: a device that has lost its side of it ends the socket first.
    smallerCalls: row('MET', 'decline'),
    greaterCalls: row('MET', 'decline'),
    ended: row('APART', 'hangUp'),
    failed: row('APART', 'hangUp', 'tellApart'),
  },
};
