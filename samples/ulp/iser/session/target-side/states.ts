/**
 * Decides on a received PDU by the state of its connection: the transitions of a target (RFC 7143,
 * 8.1.2) and the PDUs that its session type allows (RFC 7143, 4.3), as tables.
 */
import type { InitiatorPdu } from '../../wire/index.js';
import type { SessionType } from './login/operational.js';

/** States of a connection, named as in RFC 7143, 8.1.1. */
export type ConnectionState =
  /** The transport is connected; the first Login Request is awaited (S3). */
  | 'XPT_UP'
  /** Login is in progress (S4). */
  | 'IN_LOGIN'
  /** Full feature phase (S5). */
  | 'LOGGED_IN'
  /** A Logout Request was received; tasks are being ended (S6). */
  | 'IN_LOGOUT'
  /** The initiator has been asked to log out (S7). */
  | 'LOGOUT_REQUESTED'
  /** Nothing is sent any more; transport and tasks are ending (S8). */
  | 'CLEANUP_WAIT'
  /** Everything has ended (S1). */
  | 'FREE';

export type ConnectionEvent =
  | 'login begins'
  | 'login succeeds'
  | 'logout is requested'
  | 'logout begins'
  | 'transport ends'
  | 'cleaned up';

type Transitions = Readonly<Partial<Record<ConnectionEvent, ConnectionState>>>;

/** Next states by event; an event without an entry is impossible in that state. */
export const TRANSITIONS: Readonly<Record<ConnectionState, Transitions>> = {
  XPT_UP: { 'login begins': 'IN_LOGIN', 'transport ends': 'CLEANUP_WAIT' },
  IN_LOGIN: { 'login succeeds': 'LOGGED_IN', 'transport ends': 'CLEANUP_WAIT' },
  LOGGED_IN: {
    'logout is requested': 'LOGOUT_REQUESTED',
    'logout begins': 'IN_LOGOUT',
    'transport ends': 'CLEANUP_WAIT',
  },
  LOGOUT_REQUESTED: { 'logout begins': 'IN_LOGOUT', 'transport ends': 'CLEANUP_WAIT' },
  IN_LOGOUT: { 'transport ends': 'CLEANUP_WAIT' },
  CLEANUP_WAIT: { 'cleaned up': 'FREE' },
  FREE: {},
};

export type PduType = InitiatorPdu['type'];

export type Verdict =
  /** The session handles it. */
  | 'take'
  /** Answered by a Login Response with "invalid during login"; the connection ends. */
  | 'refuse login'
  /** Answered by a Reject with "protocol error"; the connection ends. */
  | 'end'
  /** Answered by a Reject with "command not supported"; the session continues. */
  | 'not supported'
  /** Answered by a Reject with "SNACK reject"; the session continues. */
  | 'no SNACK'
  /** The connection is ending: it is not answered. */
  | 'ignore';

type Verdicts = Readonly<Record<PduType, Verdict>>;

const all = (verdict: Verdict): Verdicts => ({
  nopOut: verdict,
  scsiCommand: verdict,
  taskManagementRequest: verdict,
  loginRequest: verdict,
  textRequest: verdict,
  dataOut: verdict,
  logoutRequest: verdict,
  snackRequest: verdict,
});

const LOGIN: Verdicts = { ...all('refuse login'), loginRequest: 'take' };
/**
 * PDUs of a normal session. Data-Out that answers an R2T goes to the data mover; any other is
 * unsolicited.
 */
const NORMAL: Verdicts = {
  ...all('take'),
  loginRequest: 'end',
  dataOut: 'end',
  snackRequest: 'no SNACK',
};
/** PDUs of a discovery session: only text and logout. */
const DISCOVERY: Verdicts = {
  ...all('not supported'),
  textRequest: 'take',
  logoutRequest: 'take',
  loginRequest: 'end',
  dataOut: 'end',
};

/** The verdict on each PDU. Before the end of login both session types are alike. */
export const VERDICTS: Readonly<Record<ConnectionState, Readonly<Record<SessionType, Verdicts>>>> =
  {
    XPT_UP: { Normal: LOGIN, Discovery: LOGIN },
    IN_LOGIN: { Normal: LOGIN, Discovery: LOGIN },
    LOGGED_IN: { Normal: NORMAL, Discovery: DISCOVERY },
    LOGOUT_REQUESTED: { Normal: NORMAL, Discovery: DISCOVERY },
    IN_LOGOUT: { Normal: all('ignore'), Discovery: all('ignore') },
    CLEANUP_WAIT: { Normal: all('ignore'), Discovery: all('ignore') },
    FREE: { Normal: all('ignore'), Discovery: all('ignore') },
  };
