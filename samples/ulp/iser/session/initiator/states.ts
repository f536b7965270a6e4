/**
 * States of the initiator's connection, which is its session (RFC 7143, 8.1.3: names and transition
 * numbers; error recovery level 0 has no cleanup to wait for, so every loss leads to FREE).
 */

/** S1, S2, S4 to S7 of RFC 7143, figure 8. */
export const CONNECTION_STATES = [
  'FREE',
  'XPT_WAIT',
  'IN_LOGIN',
  'LOGGED_IN',
  'IN_LOGOUT',
  'LOGOUT_REQUESTED',
] as const;
export type ConnectionState = (typeof CONNECTION_STATES)[number];

export const CONNECTION_EVENTS = [
  /** T1: the transport is asked for a connection. */
  'connect',
  /** T4: it is there, and the first Login Request leaves. */
  'connected',
  /** T5: the last Login Response says that all is well. */
  'loggedIn',
  /** T11: the target asks for a logout. */
  'logoutAsked',
  /** T9, T10: a Logout Request leaves. */
  'logout',
  /** T13: it is answered. */
  'loggedOut',
  /** T2, T7, T15: the transport is lost, login is refused, the protocol is broken, time is up. */
  'lost',
] as const;
export type ConnectionEvent = (typeof CONNECTION_EVENTS)[number];

/** Next states by event; an event without an entry is impossible. */
export const TRANSITIONS: Readonly<
  Record<ConnectionState, Partial<Readonly<Record<ConnectionEvent, ConnectionState>>>>
> = {
  FREE: { connect: 'XPT_WAIT' },
  XPT_WAIT: { connected: 'IN_LOGIN', lost: 'FREE' },
  IN_LOGIN: { loggedIn: 'LOGGED_IN', lost: 'FREE' },
  LOGGED_IN: { logout: 'IN_LOGOUT', logoutAsked: 'LOGOUT_REQUESTED', lost: 'FREE' },
  LOGOUT_REQUESTED: { logout: 'IN_LOGOUT', logoutAsked: 'LOGOUT_REQUESTED', lost: 'FREE' },
  IN_LOGOUT: { loggedOut: 'FREE', logoutAsked: 'IN_LOGOUT', lost: 'FREE' },
};

/** PDUs of a target that may come in a state; any other breaks the protocol. */
export const MAY_COME: Readonly<Record<ConnectionState, ReadonlySet<string>>> = {
  FREE: new Set(),
  XPT_WAIT: new Set(),
  IN_LOGIN: new Set(['loginResponse', 'reject']),
  ...(() => {
    const fullFeature = new Set([
      'nopIn',
      'scsiResponse',
      'taskManagementResponse',
      'textResponse',
      'dataIn',
      'r2t',
      'logoutResponse',
      'asyncMessage',
      'reject',
    ]);
    return {
      LOGGED_IN: fullFeature,
      LOGOUT_REQUESTED: fullFeature,
      IN_LOGOUT: fullFeature,
    };
  })(),
};

/** @throws Error for an event that cannot happen in the state: a mistake of this program */
export function next(state: ConnectionState, event: ConnectionEvent): ConnectionState {
  const to = TRANSITIONS[state][event];
  if (to === undefined) throw new Error(`${event} cannot happen in ${state}`);
  return to;
}
